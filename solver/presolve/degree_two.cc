#include "solver/presolve/degree_two.h"

#include <utility>
#include <vector>

#include "solver/core/vector_kernels.h"

namespace shardplan {
namespace {

constexpr std::size_t kAlwaysJoin = 4096;  // entries of a table that may always be made

TableRef join(const ReductionGraph::Between& between, SharedTables& shared) {
  const CostMatrix& before = *between.before;
  const CostMatrix& after = *between.after;
  const std::size_t columns = after.columns;
  std::vector<std::int64_t> costs(before.rows * columns, kForbidden);
  for (std::size_t row = 0; row < before.rows; ++row) {
    std::int64_t* const out = costs.data() + row * columns;
    for (std::uint32_t middle = 0; middle < before.columns; ++middle) {
      const std::int64_t first = before.at(row, middle);
      if (first >= kForbidden) continue;
      lower_to_sums(first + (*between.costs)[middle], after.costs.data() + middle * columns, columns, out);
    }
  }
  return shared.tables.intern(CostMatrix{before.rows, after.columns, std::move(costs)});
}

}  // namespace

std::size_t join_degree_two(ReductionGraph& graph, const Deadline& deadline) {
  Memo<TableRef> known;
  std::size_t num_joined = 0;
  for (bool again = true; again && !graph.is_infeasible() && !deadline.is_over();) {
    again = false;
    std::vector<bool> is_blocked(graph.num_nodes(), false);
    for (std::size_t id = 0; id < graph.num_nodes() && !graph.is_infeasible(); ++id) {
      const ReductionGraph::Node& node = graph.node(id);
      if (!node.is_alive || is_blocked[id] || !node.memory.empty() || graph.edges_of(id).size() != 2) continue;
      if (deadline.is_over()) break;
      const std::uint32_t edges[2] = {node.edges[0], node.edges[1]};
      const std::size_t ends[2] = {graph.other_end(edges[0], id), graph.other_end(edges[1], id)};
      const std::size_t entries = graph.num_values(ends[0]) * graph.num_values(ends[1]);
      if (entries > kAlwaysJoin &&
          entries > graph.num_values(id) * (graph.num_values(ends[0]) + graph.num_values(ends[1]))) {
        continue;
      }
      graph.normalise_costs(id);
      ReductionGraph::Between between = {graph.oriented(edges[0], ends[0]), graph.oriented(edges[1], id),
                                         graph.shared().numbers.intern(std::vector(node.costs))};
      const TableRef& table =
          known.get({between.before, between.after, between.costs}, [&] { return join(between, graph.shared()); });
      is_blocked[ends[0]] = is_blocked[ends[1]] = true;
      graph.replace_by_edge(id, ends[0], ends[1], table, std::move(between));
      ++num_joined;
      again = true;
    }
    graph.settle();
    if (!graph.is_infeasible()) graph.remove_singles();
  }
  return num_joined;
}

}  // namespace shardplan
