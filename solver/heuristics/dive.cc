#include "solver/heuristics/dive.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "solver/core/memory_propagation.h"
#include "solver/core/move_state.h"
#include "solver/core/restricted_core.h"

// With half of the values a pass takes a quarter of the time, so the dive continues in a restricted core once a good
// share of the values is gone: all its passes together take little more than the first ones.

namespace shardplan {
namespace {

constexpr std::uint64_t kLargeCore = 200'000;               // entries of a pass; smaller cores are left as they are
constexpr std::size_t kMostEntries = std::size_t{1} << 24;  // of its matrices

/// Free memory at each time if every node takes the least bytes of its remaining values.
class LeastUsage {
 public:
  LeastUsage(const CoreProblem& core, const std::vector<std::uint8_t>& alive)
      : core_(&core), slack_(core.limits), least_(core.segments.size()) {
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        least_[at] = least(alive, node, at, core.num_values(node));
        if (least_[at] != 0) slack_.add(core.segments[at].begin, core.segments[at].end, -least_[at]);
      }
    }
  }

  /// Removes a value unless the limits could then not be satisfied.
  bool remove(std::vector<std::uint8_t>& alive, std::size_t node, std::size_t value) {
    const CoreProblem& core = *core_;
    const std::uint32_t begin = core.first_segment[node];
    const std::uint32_t end = core.first_segment[node + 1];
    rise_.clear();
    for (std::uint32_t at = begin; at < end; ++at) {
      const CoreSegment& segment = core.segments[at];
      const std::int64_t rise =
          core.bytes[segment.bytes + value] == least_[at] ? least(alive, node, at, value) - least_[at] : 0;
      if (rise > 0 && slack_.least(segment.begin, segment.end) < rise) return false;
      rise_.push_back(rise);
    }
    for (std::uint32_t at = begin; at < end; ++at) {
      if (rise_[at - begin] == 0) continue;
      least_[at] += rise_[at - begin];
      slack_.add(core.segments[at].begin, core.segments[at].end, -rise_[at - begin]);
    }
    alive[core.first_value[node] + value] = 0;
    return true;
  }

 private:
  std::int64_t least(const std::vector<std::uint8_t>& alive, std::size_t node, std::uint32_t at,
                     std::size_t without) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t value = 0; value < core_->num_values(node); ++value) {
      if (value != without && alive[core_->first_value[node] + value]) {
        least = std::min(least, core_->bytes[core_->segments[at].bytes + value]);
      }
    }
    return least;
  }

  const CoreProblem* core_;
  Slack slack_;
  std::vector<std::int64_t> least_, rise_;
};

}  // namespace

std::optional<CoreChoice> dive(const CoreProblem& whole, DualBound& whole_dual, double target, double rate, int passes,
                               const DualBound::Steps& steps, WorkMeter& meter) {
  struct Candidate {
    double excess;
    std::uint32_t node, value;
  };
  std::vector<Candidate> candidates;
  std::unique_ptr<RestrictedCore> part;  // the remaining core, once it is small; null: the whole core
  std::unique_ptr<DualBound> part_dual;
  for (;;) {
    const CoreProblem& core = part ? part->core : whole;
    DualBound& dual = part ? *part_dual : whole_dual;
    for (int i = 0; i < passes; ++i) {
      if (!meter.spend(dual.work_per_pass())) return std::nullopt;
      if (dual.iterate(target, steps) == std::numeric_limits<double>::infinity()) return std::nullopt;
    }
    // The bound at this point of the dive is not the problem's; prices keep following what remains.
    candidates.clear();
    std::vector<std::uint8_t> alive = dual.alive();
    for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
      const std::uint32_t count = static_cast<std::uint32_t>(core.num_values(node));
      std::uint32_t best = count;
      for (std::uint32_t value = 0; value < count; ++value) {
        if (dual.is_alive(node, value) &&
            (best == count || dual.reduced_cost(node, value) < dual.reduced_cost(node, best)))
          best = value;
      }
      for (std::uint32_t value = 0; value < count; ++value) {
        if (value != best && dual.is_alive(node, value))
          candidates.push_back({dual.reduced_cost(node, value), node, value});
      }
    }
    if (candidates.empty()) break;
    const std::size_t removed =
        std::min(candidates.size(), static_cast<std::size_t>(rate * static_cast<double>(candidates.size())) + 1);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      if (a.excess != b.excess) return a.excess > b.excess;
      return a.node != b.node ? a.node < b.node : a.value < b.value;
    });
    LeastUsage usage(core, alive);
    std::size_t num_removed = 0;
    for (const Candidate& candidate : candidates) {
      if (num_removed >= removed) break;
      if (usage.remove(alive, candidate.node, candidate.value)) ++num_removed;
    }
    // All remaining values may be needed to satisfy the limits: then the most expensive nodes take what they can.
    if (num_removed == 0 || !propagate_memory(core, alive)) break;
    dual.set_alive(std::move(alive));
    dual.forget_best();
    if (core.sweep_work < kLargeCore) continue;
    const auto left = static_cast<double>(std::count(dual.alive().begin(), dual.alive().end(), 1));
    if (left > kWorthRestricting * static_cast<double>(dual.alive().size())) continue;
    meter.spend(kPassesToRestrict * dual.work_per_pass());
    std::optional<RestrictedCore> restricted = restrict_core(core, dual.alive(), kMostEntries);
    if (!restricted) continue;
    auto smaller = std::make_unique<RestrictedCore>(*std::move(restricted));
    auto smaller_dual = std::make_unique<DualBound>(smaller->core);
    smaller_dual->restore(dual.restricted_state(*smaller), std::vector<std::uint8_t>(smaller->core.costs.size(), 1));
    smaller_dual->restart_steps(dual.step());
    if (part) smaller->count_values_as(*part);
    part_dual = std::move(smaller_dual);
    part = std::move(smaller);
  }
  MoveState state(whole, part ? part->expand(part_dual->decoded()) : whole_dual.decoded());
  if (!state.repair(meter)) return std::nullopt;
  state.descend(meter);
  if (!state.is_feasible()) return std::nullopt;
  return state.choice();
}

}  // namespace shardplan
