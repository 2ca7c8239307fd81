#include "solver/core/core_problem.h"

#include <algorithm>
#include <map>

#include "solver/strategy_problem.h"

namespace shardplan {
namespace {

/// Numbers equal lines (rows or columns) alike, in the order of their first appearance.
std::uint32_t classify(std::size_t count, const auto& line, std::vector<std::uint32_t>& class_of) {
  std::map<std::vector<std::int64_t>, std::uint32_t> known;
  for (std::size_t at = 0; at < count; ++at) {
    class_of.push_back(known.try_emplace(line(at), static_cast<std::uint32_t>(known.size())).first->second);
  }
  return static_cast<std::uint32_t>(known.size());
}

}  // namespace

CoreMatrix make_core_matrix(const Table& table, double big_m) {
  CoreMatrix matrix;
  matrix.row_classes = classify(
      table.rows,
      [&](std::size_t row) {
        const auto begin = table.costs.begin() + static_cast<std::ptrdiff_t>(row * table.columns);
        return std::vector<std::int64_t>(begin, begin + table.columns);
      },
      matrix.row_class);
  matrix.column_classes = classify(
      table.columns,
      [&](std::size_t column) {
        std::vector<std::int64_t> line;
        for (std::size_t row = 0; row < table.rows; ++row) line.push_back(table.at(row, column));
        return line;
      },
      matrix.column_class);
  matrix.forward.resize(std::size_t{matrix.row_classes} * matrix.column_classes);
  matrix.backward.resize(matrix.forward.size());
  for (std::size_t row = 0; row < table.rows; ++row) {
    for (std::size_t column = 0; column < table.columns; ++column) {
      const std::int64_t cost = table.at(row, column);
      const double entry = cost >= kForbidden ? big_m : std::min(static_cast<double>(cost), big_m);
      matrix.forward[std::size_t{matrix.row_class[row]} * matrix.column_classes + matrix.column_class[column]] = entry;
      matrix.backward[std::size_t{matrix.column_class[column]} * matrix.row_classes + matrix.row_class[row]] = entry;
    }
  }
  return matrix;
}

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
    result.excess += std::max<std::int64_t>(bytes - core.limits[time], 0);
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
}

}  // namespace shardplan
