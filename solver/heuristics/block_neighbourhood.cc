#include "solver/heuristics/block_neighbourhood.h"

#include <algorithm>
#include <limits>

#include "solver/heuristics/dive.h"

namespace shardplan {

CoreBlock cut_block(const MoveState& state, const std::vector<std::uint32_t>& nodes,
                    const std::vector<double>& prices) {
  const CoreProblem& whole = state.core();
  CoreBlock block;
  block.nodes = nodes;
  std::sort(block.nodes.begin(), block.nodes.end());
  const auto position = [&](std::uint32_t node) {
    const auto at = std::lower_bound(block.nodes.begin(), block.nodes.end(), node);
    return at != block.nodes.end() && *at == node ? static_cast<std::size_t>(at - block.nodes.begin())
                                                  : block.nodes.size();
  };
  // Times: intervals between the ends of the block's segments, with the least free memory in each.
  std::vector<std::uint32_t> ends;
  for (const std::uint32_t node : block.nodes) {
    for (std::uint32_t at = whole.first_segment[node]; at < whole.first_segment[node + 1]; ++at) {
      ends.insert(ends.end(), {whole.segments[at].begin, whole.segments[at].end});
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  CoreProblem& core = block.core;
  core.matrices = whole.matrices;
  core.big_m = whole.big_m;
  core.first_value = core.first_neighbour = core.first_segment = {0};
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    core.limits.push_back(state.slack().least(ends[i], ends[i + 1]));
    double price = 0;
    for (std::uint32_t time = ends[i]; time < ends[i + 1]; ++time) price += prices[time];
    block.prices.push_back(price);
  }
  for (const std::uint32_t node : block.nodes) {
    const std::span<const double> conditional = state.conditional(node);
    core.costs.insert(core.costs.end(), conditional.begin(), conditional.end());
    double* const costs = core.costs.data() + core.first_value.back();
    for (std::uint32_t at = whole.first_neighbour[node]; at < whole.first_neighbour[node + 1]; ++at) {
      const CoreNeighbour& neighbour = whole.neighbours[at];
      const std::size_t other = position(neighbour.node);
      if (other == block.nodes.size()) continue;
      const CoreNeighbour& reverse = whole.neighbours[neighbour.reverse];
      const double* const row = whole.row(reverse, state.choice()[neighbour.node]);
      const std::uint32_t* const class_of = whole.other_class(reverse);
      for (std::size_t value = 0; value < conditional.size(); ++value) costs[value] -= row[class_of[value]];
      core.neighbours.push_back({static_cast<std::uint32_t>(other), neighbour.matrix, neighbour.is_row, 0});
    }
    for (std::uint32_t at = whole.first_segment[node]; at < whole.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = whole.segments[at];
      const auto time = [&](std::uint32_t end) {
        return static_cast<std::uint32_t>(std::lower_bound(ends.begin(), ends.end(), end) - ends.begin());
      };
      const CoreSegment moved{time(segment.begin), time(segment.end), static_cast<std::uint32_t>(core.bytes.size())};
      const auto bytes = whole.bytes.begin() + segment.bytes;
      core.bytes.insert(core.bytes.end(), bytes, bytes + static_cast<std::ptrdiff_t>(conditional.size()));
      core.segments.push_back(moved);
      const std::int64_t own = core.bytes[moved.bytes + state.choice()[node]];
      for (std::uint32_t t = moved.begin; own != 0 && t < moved.end; ++t) core.limits[t] += own;
    }
    core.first_value.push_back(static_cast<std::uint32_t>(core.costs.size()));
    core.first_neighbour.push_back(static_cast<std::uint32_t>(core.neighbours.size()));
    core.first_segment.push_back(static_cast<std::uint32_t>(core.segments.size()));
  }
  finish(core);
  if (core.rounded) core.rounded = whole.rounded;
  return block;
}

BlockNeighbourhood::BlockNeighbourhood(const CoreProblem& core) : core_(&core), is_in_(core.num_nodes(), 0) {}

std::vector<std::uint32_t> BlockNeighbourhood::ball(std::uint32_t centre, Random& random, std::size_t size) {
  std::vector<std::uint32_t> nodes{centre};
  is_in_[centre] = 1;
  for (std::size_t at = 0; at < nodes.size() && nodes.size() < size; ++at) {
    std::vector<std::uint32_t> next;
    for (std::uint32_t slot = core_->first_neighbour[nodes[at]]; slot < core_->first_neighbour[nodes[at] + 1]; ++slot) {
      if (!is_in_[core_->neighbours[slot].node]) next.push_back(core_->neighbours[slot].node);
    }
    for (std::size_t i = next.size(); i > 1; --i) std::swap(next[i - 1], next[random.below(i)]);
    for (const std::uint32_t node : next) {
      if (nodes.size() >= size) break;
      is_in_[node] = 1;
      nodes.push_back(node);
    }
  }
  for (const std::uint32_t node : nodes) is_in_[node] = 0;
  return nodes;
}

bool BlockNeighbourhood::move(MoveState& state, Random& random, std::size_t size, const std::vector<double>& prices,
                              WorkMeter& meter) {
  const CoreProblem& whole = *core_;
  size = std::min(size, whole.num_nodes());
  std::vector<std::uint32_t> nodes;
  if (random.below(2) == 0) {
    nodes = ball(static_cast<std::uint32_t>(random.below(whole.num_nodes())), random, size);
  } else {
    const std::size_t first = random.below(whole.num_nodes() - size + 1);
    for (std::size_t i = 0; i < size; ++i) nodes.push_back(static_cast<std::uint32_t>(first + i));
  }
  ++num_blocks_;
  const CoreBlock block = cut_block(state, nodes, prices);
  if (!meter.spend(20 * block.core.costs.size() + 50 * block.core.segments.size() + 2 * block.core.limits.size()))
    return false;
  CoreChoice now;
  for (const std::uint32_t node : block.nodes) now.push_back(state.choice()[node]);
  const double cost = evaluate(block.core, now).cost;
  DualBound dual(block.core);
  dual.raise_precision(DualBound::Precision::kFloats);
  dual.set_prices(block.prices);
  const DualBound::Steps steps{DualBound::Subgradient::kDecoded, 0.7};
  for (int i = 0; i < 40; ++i) {
    if (!meter.spend(dual.work_per_pass())) return false;
    const double bound = dual.iterate(cost, steps);
    if (bound == std::numeric_limits<double>::infinity() || dual.best_bound() > cost - 1) {
      ++num_proven_;
      return false;
    }
  }
  dual.set_prices(std::vector(dual.best_prices()));
  dual.restart_steps(0.3);
  const std::optional<CoreChoice> found = dive(block.core, dual, cost, 0.25, 4, steps, meter);
  if (!found) return false;
  const CoreEvaluation better = evaluate(block.core, *found);
  if (better.excess > 0 || better.cost >= cost) return false;
  for (std::size_t at = 0; at < block.nodes.size(); ++at) state.move(block.nodes[at], (*found)[at]);
  return true;
}

}  // namespace shardplan
