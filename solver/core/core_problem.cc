#include "solver/core/core_problem.h"

#include <algorithm>

namespace shardplan {
namespace {

constexpr std::int64_t kLargestExcess = std::int64_t{1} << 61;  // of the times so far; that of one is at most 2^62

}  // namespace

CoreEvaluation evaluate(const CoreProblem& core, const CoreChoice& choice) {
  CoreEvaluation result;
  std::vector<std::int64_t> in_use(core.limits.size() + 1, 0);
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    result.cost += core.costs[core.first_value[node] + choice[node]];
    for (std::uint32_t at = core.first_neighbour[node]; at < core.first_neighbour[node + 1]; ++at) {
      const CoreNeighbour& neighbour = core.neighbours[at];
      if (neighbour.node > node) result.cost += core.edge_cost(neighbour, choice[node], choice[neighbour.node]);
    }
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      in_use[segment.begin] += core.bytes[segment.bytes + choice[node]];
      in_use[segment.end] -= core.bytes[segment.bytes + choice[node]];
    }
  }
  std::int64_t bytes = 0;
  for (std::size_t time = 0; time < core.limits.size(); ++time) {
    bytes += in_use[time];
    result.excess = std::min(result.excess, kLargestExcess) + std::max<std::int64_t>(bytes - core.limits[time], 0);
  }
  return result;
}

void finish(CoreProblem& core) {
  core.sweep_work = core.costs.size();
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t at = core.first_neighbour[node]; at < core.first_neighbour[node + 1]; ++at) {
      CoreNeighbour& neighbour = core.neighbours[at];
      const CoreMatrix& matrix = (*core.matrices)[neighbour.matrix];
      core.sweep_work += core.num_values(node) + std::size_t{matrix.row_classes} * matrix.column_classes / 2;
      const auto begin = core.neighbours.begin() + core.first_neighbour[neighbour.node];
      const auto end = core.neighbours.begin() + core.first_neighbour[neighbour.node + 1];
      const auto other =
          std::lower_bound(begin, end, node, [](const CoreNeighbour& item, std::size_t id) { return item.node < id; });
      neighbour.reverse = static_cast<std::uint32_t>(other - core.neighbours.begin());
    }
  }
  if (core.pass_work() >= CoreProblem::kLargePass && !core.rounded) {
    core.rounded = std::make_shared<const RoundedMatrices>(core.matrices);
  }
}

}  // namespace shardplan
