#include "solver/core/move_state.h"

#include <algorithm>
#include <limits>

namespace shardplan {

MoveState::MoveState(const CoreProblem& core, CoreChoice choice)
    : core_(&core), choice_(std::move(choice)), slack_(core.limits) {
  recompute();
}

void MoveState::set(const CoreChoice& choice) {
  std::size_t different = 0;
  for (std::size_t node = 0; node < choice.size(); ++node) different += choice[node] != choice_[node];
  if (different * 8 > choice.size()) {
    choice_ = choice;
    slack_ = Slack(core_->limits);
    recompute();
    return;
  }
  for (std::size_t node = 0; node < choice.size(); ++node) move(node, choice[node]);
}

void MoveState::recompute() {
  const CoreProblem& core = *core_;
  conditional_ = core.costs;
  cost_ = 0;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    double* const costs = conditional_.data() + core.first_value[node];
    cost_ += costs[choice_[node]];
    for (std::uint32_t at = core.first_neighbour[node]; at < core.first_neighbour[node + 1]; ++at) {
      const CoreNeighbour& neighbour = core.neighbours[at];
      const CoreNeighbour& reverse = core.neighbours[neighbour.reverse];
      const double* const row = core.row(reverse, choice_[neighbour.node]);
      const std::uint32_t* const class_of = core.other_class(reverse);
      for (std::size_t value = 0; value < core.num_values(node); ++value) costs[value] += row[class_of[value]];
      if (neighbour.node > node) cost_ += row[class_of[choice_[node]]];
    }
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      const std::int64_t bytes = core.bytes[segment.bytes + choice_[node]];
      if (bytes != 0) slack_.add(segment.begin, segment.end, -bytes);
    }
  }
}

bool MoveState::is_feasible() const {
  return cost_ < core_->big_m && (core_->limits.empty() || slack_.least(0, core_->limits.size()) >= 0);
}

void MoveState::move(std::size_t node, std::uint32_t value) {
  const CoreProblem& core = *core_;
  const std::uint32_t old = choice_[node];
  if (value == old) return;
  const double* const costs = conditional_.data() + core.first_value[node];
  cost_ += costs[value] - costs[old];
  choice_[node] = value;
  for (std::uint32_t at = core.first_neighbour[node]; at < core.first_neighbour[node + 1]; ++at) {
    const CoreNeighbour& neighbour = core.neighbours[at];
    const double* const before = core.row(neighbour, old);
    const double* const after = core.row(neighbour, value);
    if (before == after) continue;
    const std::uint32_t* const class_of = core.other_class(neighbour);
    double* const other = conditional_.data() + core.first_value[neighbour.node];
    const std::size_t count = core.num_values(neighbour.node);
    for (std::size_t i = 0; i < count; ++i) other[i] += after[class_of[i]] - before[class_of[i]];
  }
  for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
    const CoreSegment& segment = core.segments[at];
    const std::int64_t bytes = core.bytes[segment.bytes + value] - core.bytes[segment.bytes + old];
    if (bytes != 0) slack_.add(segment.begin, segment.end, -bytes);
  }
}

bool MoveState::fits(std::size_t node, std::uint32_t value) const {
  const CoreProblem& core = *core_;
  for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
    const CoreSegment& segment = core.segments[at];
    const std::int64_t bytes = core.bytes[segment.bytes + value] - core.bytes[segment.bytes + choice_[node]];
    if (bytes > 0 && slack_.least(segment.begin, segment.end) < bytes) return false;
  }
  return true;
}

void MoveState::descend(WorkMeter& meter) {
  const CoreProblem& core = *core_;
  std::vector<std::uint8_t> is_waiting(core.num_nodes(), 1);
  for (bool again = true; again;) {
    again = false;
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      if (!is_waiting[node]) continue;
      is_waiting[node] = 0;
      const std::span<const double> costs = conditional(node);
      if (!meter.spend(costs.size() * (2 + core.first_neighbour[node + 1] - core.first_neighbour[node]))) return;
      std::uint32_t best = choice_[node];
      for (std::uint32_t value = 0; value < costs.size(); ++value) {
        if (costs[value] < costs[best] && fits(node, value)) best = value;
      }
      if (best == choice_[node]) continue;
      move(node, best);
      for (std::uint32_t at = core.first_neighbour[node]; at < core.first_neighbour[node + 1]; ++at) {
        is_waiting[core.neighbours[at].node] = 1;
      }
      again = true;
    }
  }
}

double MoveState::excess_removed(std::size_t node, std::uint32_t value) const {
  const CoreProblem& core = *core_;
  double removed = 0;
  for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
    const CoreSegment& segment = core.segments[at];
    const std::int64_t more = core.bytes[segment.bytes + value] - core.bytes[segment.bytes + choice_[node]];
    if (more < 0) {
      slack_.visit_negative(segment.begin, segment.end, 0, [&](std::size_t, std::int64_t slack) {
        removed += static_cast<double>(std::min(-more, -slack));
      });
    } else if (more > 0) {
      slack_.visit_negative(segment.begin, segment.end, more, [&](std::size_t, std::int64_t slack) {
        removed -= static_cast<double>(std::min(more, -slack));
      });
    }
  }
  return removed;
}

bool MoveState::repair(WorkMeter& meter) {
  const CoreProblem& core = *core_;
  if (core.limits.empty()) return true;
  struct Candidate {
    double rate;  // cost per byte
    std::uint32_t node, value;
  };
  std::vector<Candidate> candidates;
  while (slack_.least(0, core.limits.size()) < 0) {
    const std::size_t worst = slack_.worst();
    candidates.clear();
    if (!meter.spend(core.segments.size() * 2)) return false;
    for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        const CoreSegment& segment = core.segments[at];
        if (segment.begin > worst || worst >= segment.end) continue;
        const std::int64_t* const bytes = core.bytes.data() + segment.bytes;
        const std::span<const double> costs = conditional(node);
        Candidate best{std::numeric_limits<double>::infinity(), node, choice_[node]};
        for (std::uint32_t value = 0; value < costs.size(); ++value) {
          if (bytes[value] >= bytes[choice_[node]]) continue;
          const double rate = (std::max(costs[value] - costs[choice_[node]], 0.0) + 1) /
                              static_cast<double>(bytes[choice_[node]] - bytes[value]);
          if (rate < best.rate) best = {rate, node, value};
        }
        if (best.value != choice_[node]) candidates.push_back(best);
      }
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.rate != b.rate ? a.rate < b.rate : a.node < b.node;
    });
    bool is_moved = false;
    for (const Candidate& candidate : candidates) {
      if (slack_.at(worst) >= 0) break;
      // What a move adds at other times must fit there, so the total excess over the limits falls.
      if (!fits(candidate.node, candidate.value)) continue;
      move(candidate.node, candidate.value);
      is_moved = true;
      if (!meter.spend(100)) return false;
    }
    if (slack_.at(worst) < 0 && !is_moved && !reduce_excess(worst, meter)) return false;
  }
  return true;
}

bool MoveState::reduce_excess(std::size_t worst, WorkMeter& meter) {
  const CoreProblem& core = *core_;
  std::size_t num_over = 0;
  slack_.visit_negative(0, core.limits.size(), 0, [&](std::size_t, std::int64_t) { ++num_over; });
  std::uint32_t best_node = 0;
  std::uint32_t best_value = 0;
  double best_rate = std::numeric_limits<double>::infinity();
  for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      if (segment.begin > worst || worst >= segment.end) continue;
      const std::int64_t* const bytes = core.bytes.data() + segment.bytes;
      const std::span<const double> costs = conditional(node);
      for (std::uint32_t value = 0; value < costs.size(); ++value) {
        if (bytes[value] >= bytes[choice_[node]]) continue;
        if (!meter.spend(16 + num_over)) return false;
        const double removed = excess_removed(node, value);
        const double rate = (std::max(costs[value] - costs[choice_[node]], 0.0) + 1) / removed;
        if (removed <= 0 || rate >= best_rate) continue;
        best_rate = rate;
        best_node = node;
        best_value = value;
      }
    }
  }
  if (best_rate == std::numeric_limits<double>::infinity()) return false;
  move(best_node, best_value);
  return true;
}

CoreChoice fewest_bytes_choice(const CoreProblem& core) {
  CoreChoice choice(core.num_nodes(), 0);
  std::vector<double> bytes;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    bytes.assign(core.num_values(node), 0);
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      for (std::size_t value = 0; value < bytes.size(); ++value) {
        bytes[value] +=
            static_cast<double>(core.bytes[segment.bytes + value]) * static_cast<double>(segment.end - segment.begin);
      }
    }
    const double* const costs = core.costs.data() + core.first_value[node];
    for (std::uint32_t value = 1; value < bytes.size(); ++value) {
      const std::uint32_t best = choice[node];
      if (bytes[value] < bytes[best] || (bytes[value] == bytes[best] && costs[value] < costs[best]))
        choice[node] = value;
    }
  }
  return choice;
}

}  // namespace shardplan
