#include "solver/heuristics/tree_neighbourhood.h"

#include <algorithm>
#include <limits>

// A very large neighbourhood (Ahuja, Ergun, Orlin, Punnen, Discrete Applied Mathematics 123, 2002): all choices that
// differ from the current one on a tree of nodes. There are exponentially many of them, searched exactly in one pass of
// dynamic programming from the leaves to the root and back. Trees grow at random over nodes that are adjacent to the
// tree once, so that no cycle closes.
//
// Memory cannot enter a tree's tables without making them as wide as the limits, so bytes are priced: with a fraction
// of the bound's prices (sometimes none, sometimes all of them, since they suit the whole problem and not this tree),
// and if limits are still exceeded, with an additional price at those times that takes away twice the gain. After three
// attempts the old choice is kept.

namespace shardplan {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

}  // namespace

TreeNeighbourhood::TreeNeighbourhood(const CoreProblem& core, const std::vector<double>& prices)
    : core_(&core), position_(core.num_nodes(), kNone), links_(core.num_nodes(), 0) {
  set_prices(prices);
}

void TreeNeighbourhood::set_prices(const std::vector<double>& prices) {
  cumulative_.assign(1, 0);
  for (const double price : prices) cumulative_.push_back(cumulative_.back() + price);
}

void TreeNeighbourhood::grow(std::uint32_t root, Random& random, std::size_t size) {
  const CoreProblem& core = *core_;
  for (const std::uint32_t node : touched_) links_[node] = 0;
  for (const std::uint32_t node : tree_) position_[node] = kNone;
  touched_.clear();
  frontier_.clear();
  tree_.clear();
  parent_.clear();
  slot_.clear();
  frontier_.push_back(root);
  while (!frontier_.empty() && tree_.size() < size) {
    const std::size_t at = random.below(frontier_.size());
    const std::uint32_t node = frontier_[at];
    frontier_[at] = frontier_.back();
    frontier_.pop_back();
    if (links_[node] > 1) continue;
    position_[node] = static_cast<std::uint32_t>(tree_.size());
    tree_.push_back(node);
    parent_.push_back(kNone);
    slot_.push_back(kNone);
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const std::uint32_t other = core.neighbours[slot].node;
      if (position_[other] != kNone) {
        parent_.back() = position_[other];
        slot_.back() = slot;
        continue;
      }
      if (links_[other]++ == 0) {
        touched_.push_back(other);
        frontier_.push_back(other);
      }
    }
    work_ += core.first_neighbour[node + 1] - core.first_neighbour[node];
  }
}

double TreeNeighbourhood::local_price(std::size_t begin, std::size_t end) const {
  const auto before = [&](std::size_t time) {
    const auto at = std::lower_bound(local_.begin(), local_.end(), time,
                                     [](const Priced& item, std::size_t t) { return item.time < t; });
    return at == local_.begin() ? 0.0 : std::prev(at)->price_to_here;
  };
  return before(end) - before(begin);
}

void TreeNeighbourhood::solve(const MoveState& state, double price_share) {
  const CoreProblem& core = *core_;
  costs_.clear();
  answers_.clear();
  first_cost_.clear();
  first_answer_.assign(tree_.size(), 0);
  for (std::size_t at = 0; at < tree_.size(); ++at) {
    const std::uint32_t node = tree_[at];
    const std::span<const double> conditional = state.conditional(node);
    first_cost_.push_back(static_cast<std::uint32_t>(costs_.size()));
    costs_.insert(costs_.end(), conditional.begin(), conditional.end());
    double* const costs = costs_.data() + first_cost_.back();
    for (std::uint32_t segment = core.first_segment[node]; segment < core.first_segment[node + 1]; ++segment) {
      const CoreSegment& item = core.segments[segment];
      double price = price_share * (cumulative_[item.end] - cumulative_[item.begin]);
      if (!local_.empty()) price += local_price(item.begin, item.end);
      if (price <= 0) continue;
      for (std::size_t value = 0; value < conditional.size(); ++value) {
        costs[value] += price * static_cast<double>(core.bytes[item.bytes + value]);
      }
    }
    if (parent_[at] == kNone) continue;
    // The edge to the parent is optimised, so it is taken out of the conditional costs of both ends.
    const CoreNeighbour& up = core.neighbours[slot_[at]];
    const CoreNeighbour& down = core.neighbours[up.reverse];
    const double* const from_parent = core.row(down, state.choice()[up.node]);
    const std::uint32_t* const class_here = core.other_class(down);
    for (std::size_t value = 0; value < conditional.size(); ++value) costs[value] -= from_parent[class_here[value]];
    const double* const from_here = core.row(up, state.choice()[node]);
    const std::uint32_t* const class_there = core.other_class(up);
    double* const parent_costs = costs_.data() + first_cost_[parent_[at]];
    for (std::size_t value = 0; value < core.num_values(up.node); ++value)
      parent_costs[value] -= from_here[class_there[value]];
  }
  for (std::size_t at = tree_.size(); at-- > 1;) {
    const std::uint32_t node = tree_[at];
    const CoreNeighbour& up = core.neighbours[slot_[at]];
    const CoreNeighbour& down = core.neighbours[up.reverse];
    const CoreMatrix& matrix = (*core.matrices)[up.matrix];
    const std::size_t classes = up.is_row ? matrix.row_classes : matrix.column_classes;
    const std::size_t other_classes = up.is_row ? matrix.column_classes : matrix.row_classes;
    const std::uint32_t* const class_here = core.other_class(down);
    const std::uint32_t* const class_there = core.other_class(up);
    const double* const costs = costs_.data() + first_cost_[at];
    by_class_.assign(classes, std::numeric_limits<double>::infinity());
    best_of_class_.assign(classes, 0);
    for (std::uint32_t value = 0; value < core.num_values(node); ++value) {
      if (costs[value] < by_class_[class_here[value]]) {
        by_class_[class_here[value]] = costs[value];
        best_of_class_[class_here[value]] = value;
      }
    }
    const double* const entries =
        up.is_row ? matrix.backward.data() : matrix.forward.data();  // other_classes x classes
    first_answer_[at] = static_cast<std::uint32_t>(answers_.size());
    const std::size_t first_message = costs_.size();
    for (std::size_t other = 0; other < other_classes; ++other) {
      const double* const row = entries + other * classes;
      double least = std::numeric_limits<double>::infinity();
      std::size_t best = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        const double sum = by_class_[c] + row[c];
        best = sum < least ? c : best;
        least = sum < least ? sum : least;
      }
      answers_.push_back(best_of_class_[best]);
      costs_.push_back(least);
    }
    double* const parent_costs = costs_.data() + first_cost_[parent_[at]];
    for (std::size_t value = 0; value < core.num_values(up.node); ++value) {
      parent_costs[value] += costs_[first_message + class_there[value]];
    }
    costs_.resize(first_message);
    work_ += classes * other_classes + 2 * core.num_values(node);
  }
  chosen_.assign(tree_.size(), 0);
  const double* const root = costs_.data();
  chosen_[0] = static_cast<std::uint32_t>(std::min_element(root, root + core.num_values(tree_[0])) - root);
  for (std::size_t at = 1; at < tree_.size(); ++at) {
    const CoreNeighbour& up = core.neighbours[slot_[at]];
    chosen_[at] = answers_[first_answer_[at] + core.other_class(up)[chosen_[parent_[at]]]];
  }
}

void TreeNeighbourhood::move(MoveState& state, Random& random, std::size_t size, double price_share, double allowance,
                             WorkMeter& meter) {
  const CoreProblem& core = *core_;
  work_ = 0;
  grow(static_cast<std::uint32_t>(random.below(core.num_nodes())), random, size);
  old_.clear();
  for (const std::uint32_t node : tree_) old_.push_back(state.choice()[node]);
  const double before = state.cost();
  local_.clear();
  for (int attempt = 0; attempt < 3; ++attempt) {
    solve(state, price_share);
    std::vector<Priced> broken;
    for (std::size_t at = 0; at < tree_.size(); ++at) {
      const std::uint32_t node = tree_[at];
      if (chosen_[at] == old_[at]) continue;
      state.move(node, chosen_[at]);
      work_ += 24 * (core.first_neighbour[node + 1] - core.first_neighbour[node] + core.first_segment[node + 1] -
                     core.first_segment[node]);
    }
    double excess = 0;
    for (std::size_t at = 0; at < tree_.size(); ++at) {
      if (chosen_[at] == old_[at]) continue;
      for (std::uint32_t segment = core.first_segment[tree_[at]]; segment < core.first_segment[tree_[at] + 1];
           ++segment) {
        const CoreSegment& item = core.segments[segment];
        if (state.slack().least(item.begin, item.end) >= 0) continue;
        state.slack().visit_negative(item.begin, item.end, 0, [&](std::size_t time, std::int64_t slack) {
          broken.push_back({static_cast<std::uint32_t>(time), -static_cast<double>(slack)});
        });
      }
    }
    if (broken.empty() && state.cost() <= before + allowance) break;
    const double gain = before - state.cost();
    for (std::size_t at = 0; at < tree_.size(); ++at) state.move(tree_[at], old_[at]);
    if (broken.empty() || gain + allowance < 0) break;
    std::sort(broken.begin(), broken.end(), [](const Priced& a, const Priced& b) { return a.time < b.time; });
    broken.erase(
        std::unique(broken.begin(), broken.end(), [](const Priced& a, const Priced& b) { return a.time == b.time; }),
        broken.end());
    for (const Priced& item : broken) excess += item.price_to_here;
    // Twice the gain is spread over the excess bytes, on top of the prices so far.
    const double price = 2 * (gain + allowance + 1) / excess;
    std::vector<Priced> sum;
    double total = 0;
    double old_total = 0;
    for (std::size_t a = 0, b = 0; a < local_.size() || b < broken.size();) {
      const std::uint32_t time =
          std::min(a < local_.size() ? local_[a].time : kNone, b < broken.size() ? broken[b].time : kNone);
      if (a < local_.size() && local_[a].time == time) {
        total += local_[a].price_to_here - old_total;
        old_total = local_[a++].price_to_here;
      }
      if (b < broken.size() && broken[b].time == time) total += price, ++b;
      sum.push_back({time, total});
    }
    local_ = std::move(sum);
    work_ += 8 * local_.size();
  }
  meter.spend(work_ + 200);
}

}  // namespace shardplan
