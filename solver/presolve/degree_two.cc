#include "solver/presolve/degree_two.h"

#include <vector>

namespace shardplan {
namespace {

constexpr std::size_t kAlwaysJoin = 4096;  // entries of a table that may be made in any case

struct Joined {
  TableRef table;
  Positions best;  // the value between, by pair in the order of the table
};

Joined join(const CostMatrix& before, const std::vector<std::int64_t>& costs, const CostMatrix& after,
            SharedTables& shared) {
  const std::size_t entries = std::size_t{before.rows} * after.columns;
  CostMatrix table{before.rows, after.columns, std::vector<std::int64_t>(entries, kForbidden)};
  std::vector<std::uint32_t> best(entries, 0);
  for (std::size_t row = 0; row < table.rows; ++row) {
    std::int64_t* const out = table.costs.data() + row * table.columns;
    std::uint32_t* const at = best.data() + row * table.columns;
    for (std::uint32_t middle = 0; middle < before.columns; ++middle) {
      const std::int64_t first = before.at(row, middle);
      if (first >= kForbidden) continue;
      const std::int64_t* const in = after.costs.data() + middle * table.columns;
      const std::int64_t cost = first + costs[middle];
      for (std::size_t column = 0; column < table.columns; ++column) {
        const std::int64_t sum = cost + in[column];
        at[column] = sum < out[column] ? middle : at[column];
        out[column] = sum < out[column] ? sum : out[column];
      }
    }
  }
  return {shared.tables.intern(std::move(table)), shared.positions.intern(std::move(best))};
}

}  // namespace

std::size_t join_degree_two(ReductionGraph& graph, const Deadline& deadline) {
  Memo<Joined> known;
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
      const TableRef before = graph.oriented(edges[0], ends[0]);
      const TableRef after = graph.oriented(edges[1], id);
      const Numbers costs = graph.shared().numbers.intern(std::vector(node.costs));
      const Joined& joined =
          known.get({before, after, costs}, [&] { return join(*before, *costs, *after, graph.shared()); });
      is_blocked[ends[0]] = is_blocked[ends[1]] = true;
      graph.replace_by_edge(id, ends[0], ends[1], joined.table, joined.best);
      ++num_joined;
      again = true;
    }
    graph.settle();
    if (!graph.is_infeasible()) graph.remove_singles();
  }
  return num_joined;
}

}  // namespace shardplan
