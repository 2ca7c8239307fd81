#include "solver/presolve/leaf_folding.h"

#include <utility>

namespace shardplan {
namespace {

/// The best value of a leaf for each value of its neighbour (the rows of `table`); null if for one of them no value is
/// best in both cost and bytes.
Positions best_answers(const ReductionGraph::Node& leaf, const CostMatrix& table, SharedTables& shared) {
  // Of equal costs the fewest bytes; sums over segments in units of 64 KiB cannot overflow.
  std::vector<Bytes> total(leaf.costs.size(), 0);
  for (const UsageSegment& segment : leaf.memory) {
    for (std::size_t value = 0; value < total.size(); ++value) total[value] += (*segment.bytes)[value] >> 16;
  }
  std::vector<std::uint32_t> best(table.rows, 0);
  for (std::size_t row = 0; row < table.rows; ++row) {
    const auto rank = [&](std::size_t value) {
      return std::pair(leaf.costs[value] + table.at(row, value), total[value]);
    };
    for (std::uint32_t value = 1; value < table.columns; ++value) {
      if (rank(value) < rank(best[row])) best[row] = value;
    }
    for (const UsageSegment& segment : leaf.memory) {
      for (std::size_t value = 0; value < table.columns; ++value) {
        if (table.at(row, value) < kForbidden && (*segment.bytes)[value] < (*segment.bytes)[best[row]]) return nullptr;
      }
    }
  }
  return shared.positions.intern(std::move(best));
}

}  // namespace

std::size_t fold_leaves(ReductionGraph& graph, const Deadline& deadline) {
  Memo<Positions> known;
  std::size_t num_folded = 0;
  for (std::size_t id = 0; id < graph.num_nodes() && !graph.is_infeasible(); ++id) {
    const ReductionGraph::Node& node = graph.node(id);
    if (!node.is_alive || graph.edges_of(id).size() != 1) continue;
    if (deadline.is_over()) break;
    const std::uint32_t edge = node.edges[0];
    const std::size_t leader = graph.other_end(edge, id);
    graph.normalise_costs(id);
    const TableRef table = graph.oriented(edge, leader);
    Memo<Positions>::Key key{table, graph.shared().numbers.intern(std::vector(node.costs))};
    for (const UsageSegment& segment : node.memory) key.push_back(segment.bytes);
    const Positions& map = known.get(std::move(key), [&] { return best_answers(node, *table, graph.shared()); });
    if (!map) continue;
    graph.follow(id, leader, map);
    graph.settle();
    ++num_folded;
  }
  if (num_folded > 0) graph.gather_memory();
  return num_folded;
}

}  // namespace shardplan
