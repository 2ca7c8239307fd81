#include "solver/presolve/core_builder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "solver/core/vector_kernels.h"
#include "solver/equal_lines.h"

namespace shardplan {
namespace {

/// One more than the sum of the largest costs of all nodes and edges: every feasible choice costs less.
double above_all_choices(const ReductionGraph& graph, const std::vector<std::uint32_t>& nodes) {
  double largest = 1;
  for (const std::uint32_t id : nodes) {
    largest += static_cast<double>(*std::max_element(graph.node(id).costs.begin(), graph.node(id).costs.end()));
  }
  std::map<const CostMatrix*, double> largest_entry;  // never iterated over
  for (std::size_t edge = 0; edge < graph.num_edges(); ++edge) {
    if (!graph.edge(edge).is_alive) continue;
    const CostMatrix* const table = graph.edge(edge).table.get();
    const auto [at, is_new] = largest_entry.try_emplace(table, 0);
    if (is_new) at->second = static_cast<double>(largest_below(table->costs.data(), kForbidden, table->costs.size()));
    largest += at->second;
  }
  return largest;
}

}  // namespace

CoreMatrix make_core_matrix(const CostMatrix& table, double big_m) {
  std::vector<std::int64_t> transposed(table.costs.size());
  transpose(table.costs.data(), table.rows, table.columns, transposed.data());
  LineClasses rows = equal_lines<std::int64_t>(table.costs, table.rows);
  LineClasses columns = equal_lines<std::int64_t>(transposed, table.columns);
  CoreMatrix matrix;
  matrix.row_classes = static_cast<std::uint32_t>(rows.first.size());
  matrix.column_classes = static_cast<std::uint32_t>(columns.first.size());
  matrix.forward.resize(std::size_t{matrix.row_classes} * matrix.column_classes);
  matrix.backward.resize(matrix.forward.size());
  for (std::size_t row = 0; row < matrix.row_classes; ++row) {
    for (std::size_t column = 0; column < matrix.column_classes; ++column) {
      const std::int64_t cost = table.at(rows.first[row], columns.first[column]);
      const double entry = cost >= kForbidden ? big_m : std::min(static_cast<double>(cost), big_m);
      matrix.forward[row * matrix.column_classes + column] = entry;
      matrix.backward[column * matrix.row_classes + row] = entry;
      matrix.largest = std::max(matrix.largest, entry);
    }
  }
  matrix.row_class = std::move(rows.class_of);
  matrix.column_class = std::move(columns.class_of);
  return matrix;
}

BuiltCore build_core(ReductionGraph& graph, std::optional<std::int64_t> known_cost) {
  BuiltCore result;
  CoreProblem& core = result.core;
  std::vector<std::uint32_t> core_of(graph.num_nodes(), 0);
  for (std::uint32_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    graph.normalise_costs(id);
    core_of[id] = static_cast<std::uint32_t>(result.nodes.size());
    result.nodes.push_back(id);
  }
  double largest = above_all_choices(graph, result.nodes);
  if (known_cost) {
    const std::int64_t left = std::max<std::int64_t>(*known_cost - graph.constant_cost(), 0);
    largest = std::min(largest, static_cast<double>(left) + 1);
  }
  // Beyond 2^60 forbidden pairs look cheaper than they are, which keeps bounds valid.
  core.big_m = std::min(largest, 0x1p60);
  result.is_infeasibility_certain = core.big_m >= largest && !known_cost;

  core.limits = graph.memory_limits();
  core.first_value = core.first_neighbour = core.first_segment = {0};
  auto matrices = std::make_shared<std::vector<CoreMatrix>>();
  std::map<const CostMatrix*, std::uint32_t> matrix_of;  // never iterated over
  std::map<const void*, std::uint32_t> bytes_of;         // never iterated over
  for (const std::uint32_t id : result.nodes) {
    if (id % 64 == 0 && graph.gives_up()) return result;
    const ReductionGraph::Node& node = graph.node(id);
    for (const std::int64_t cost : node.costs) core.costs.push_back(std::min(static_cast<double>(cost), core.big_m));
    core.first_value.push_back(static_cast<std::uint32_t>(core.costs.size()));
    std::vector<CoreNeighbour> neighbours;
    for (const std::uint32_t edge : graph.edges_of(id)) {
      const ReductionGraph::Edge& item = graph.edge(edge);
      const auto [at, is_new] = matrix_of.try_emplace(item.table.get(), static_cast<std::uint32_t>(matrices->size()));
      if (is_new) matrices->push_back(make_core_matrix(*item.table, core.big_m));
      neighbours.push_back({core_of[graph.other_end(edge, id)], at->second, item.nodes[0] == id, 0});
    }
    std::sort(neighbours.begin(), neighbours.end(),
              [](const CoreNeighbour& a, const CoreNeighbour& b) { return a.node < b.node; });
    core.neighbours.insert(core.neighbours.end(), neighbours.begin(), neighbours.end());
    core.first_neighbour.push_back(static_cast<std::uint32_t>(core.neighbours.size()));
    for (const UsageSegment& segment : node.memory) {
      const auto [at, is_new] =
          bytes_of.try_emplace(segment.bytes.get(), static_cast<std::uint32_t>(core.bytes.size()));
      if (is_new) core.bytes.insert(core.bytes.end(), segment.bytes->begin(), segment.bytes->end());
      core.segments.push_back({segment.begin, segment.end, at->second});
    }
    core.first_segment.push_back(static_cast<std::uint32_t>(core.segments.size()));
  }
  core.matrices = std::move(matrices);
  finish(core);
  return result;
}

}  // namespace shardplan
