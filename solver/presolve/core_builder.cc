#include "solver/presolve/core_builder.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/side_by_side.h"
#include "solver/core/vector_kernels.h"
#include "solver/equal_lines.h"

namespace shardplan {
namespace {

constexpr std::size_t kThreadsForMatrices = 4;
constexpr std::size_t kEntriesTogether = std::size_t{1} << 21;  // of matrices that are worth starting threads for

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

/// The entries of some lines of `length` at some positions.
std::vector<double> entries_of(std::span<const std::int64_t> lines, const std::vector<std::uint32_t>& numbers,
                               const std::vector<std::uint32_t>& positions, std::size_t length, double big_m) {
  std::vector<double> entries;
  entries.reserve(numbers.size() * positions.size());
  for (const std::uint32_t number : numbers) {
    const std::int64_t* const line = lines.data() + number * length;
    for (const std::uint32_t position : positions) {
      const std::int64_t cost = line[position];
      entries.push_back(cost >= kForbidden ? big_m : std::min(static_cast<double>(cost), big_m));
    }
  }
  return entries;
}

/// Converts the tables and lets go of each, on several threads. Gives up if time is over.
std::vector<CoreMatrix> core_matrices(ReductionGraph& graph, std::vector<TableRef> tables, double big_m) {
  std::vector<CoreMatrix> matrices(tables.size());
  for (std::size_t begin = 0, end = 0; begin < tables.size(); begin = end) {
    if (graph.gives_up()) return {};
    std::size_t entries = 0;
    while (end < tables.size() && entries < kEntriesTogether) entries += tables[end++]->costs.size();
    const std::size_t threads = entries < kEntriesTogether ? 1 : num_processors(kThreadsForMatrices);
    side_by_side(threads, end - begin, [&](std::size_t, std::size_t i) {
      matrices[begin + i] = make_core_matrix(*tables[begin + i], big_m);
      tables[begin + i].reset();
    });
  }
  return matrices;
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
  matrix.forward = entries_of(table.costs, rows.first, columns.first, table.columns, big_m);
  matrix.backward = entries_of(transposed, columns.first, rows.first, table.rows, big_m);
  for (const double entry : matrix.forward) matrix.largest = std::max(matrix.largest, entry);
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
  std::vector<TableRef> tables;                          // each once
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
      const auto [at, is_new] = matrix_of.try_emplace(item.table.get(), static_cast<std::uint32_t>(tables.size()));
      if (is_new) tables.push_back(item.table);
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
  graph.forget_edges();
  core.matrices = std::make_shared<const std::vector<CoreMatrix>>(core_matrices(graph, std::move(tables), core.big_m));
  if (!graph.is_infeasible()) finish(core);
  return result;
}

}  // namespace shardplan
