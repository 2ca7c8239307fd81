#include "solver/core/restricted_core.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "solver/equal_lines.h"

namespace shardplan {
namespace {

/// The classes that occur among some values, and the position of each value's class among them.
std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> occurring(const std::vector<std::uint32_t>& class_of,
                                                                            const std::vector<std::uint32_t>& values) {
  constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<std::uint32_t> number(class_of.size(), kNone), classes, position;
  for (const std::uint32_t value : values) {
    std::uint32_t& known = number[class_of[value]];
    if (known == kNone) {
      known = static_cast<std::uint32_t>(classes.size());
      classes.push_back(class_of[value]);
    }
    position.push_back(known);
  }
  return {std::move(classes), std::move(position)};
}

/// Selected rows and columns; classes that have become equal are merged.
CoreMatrix pick(const CoreMatrix& matrix, const std::vector<std::uint32_t>& rows,
                const std::vector<std::uint32_t>& columns) {
  const auto [row_lines, row_position] = occurring(matrix.row_class, rows);
  const auto [column_lines, column_position] = occurring(matrix.column_class, columns);
  std::vector<double> lines;
  lines.reserve(row_lines.size() * column_lines.size());
  for (const std::uint32_t row : row_lines) {
    const double* const entries = matrix.forward.data() + std::size_t{row} * matrix.column_classes;
    for (const std::uint32_t column : column_lines) lines.push_back(entries[column]);
  }
  const LineClasses rows_alike = equal_lines<double>(lines, row_lines.size());
  lines.clear();
  for (const std::uint32_t column : column_lines) {
    const double* const entries = matrix.backward.data() + std::size_t{column} * matrix.row_classes;
    for (const std::uint32_t first : rows_alike.first) lines.push_back(entries[row_lines[first]]);
  }
  const LineClasses columns_alike = equal_lines<double>(lines, column_lines.size());
  CoreMatrix result;
  result.row_classes = static_cast<std::uint32_t>(rows_alike.first.size());
  result.column_classes = static_cast<std::uint32_t>(columns_alike.first.size());
  for (const std::uint32_t at : row_position) result.row_class.push_back(rows_alike.class_of[at]);
  for (const std::uint32_t at : column_position) result.column_class.push_back(columns_alike.class_of[at]);
  result.forward.resize(std::size_t{result.row_classes} * result.column_classes);
  result.backward.resize(result.forward.size());
  for (std::size_t column = 0; column < result.column_classes; ++column) {
    const double* const line = lines.data() + std::size_t{columns_alike.first[column]} * result.row_classes;
    for (std::size_t row = 0; row < result.row_classes; ++row) {
      result.forward[row * result.column_classes + column] = line[row];
      result.backward[column * result.row_classes + row] = line[row];
      result.largest = std::max(result.largest, line[row]);
    }
  }
  return result;
}

/// The bytes of the remaining values, minus their minimum.
void restrict_bytes(const CoreProblem& core, const std::vector<const std::vector<std::uint32_t>*>& kept,
                    const std::vector<std::uint32_t>& list_of, CoreProblem& to) {
  struct Picked {
    std::uint32_t at = 0;  // in `to.bytes`
    std::int64_t least = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Picked> known;  // never iterated over
  std::vector<std::int64_t> taken(core.limits.size() + 1, 0);
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      const auto [place, is_new] = known.try_emplace({segment.bytes, list_of[node]});
      Picked& picked = place->second;
      if (is_new) {
        picked.at = static_cast<std::uint32_t>(to.bytes.size());
        for (const std::uint32_t value : *kept[node]) to.bytes.push_back(core.bytes[segment.bytes + value]);
        picked.least = *std::min_element(to.bytes.begin() + picked.at, to.bytes.end());
        for (auto bytes = to.bytes.begin() + picked.at; bytes != to.bytes.end(); ++bytes) *bytes -= picked.least;
      }
      to.segments[at].bytes = picked.at;
      taken[segment.begin] += picked.least;
      taken[segment.end] -= picked.least;
    }
  }
  std::int64_t sum = 0;
  for (std::size_t time = 0; time < to.limits.size(); ++time) to.limits[time] -= sum += taken[time];
}

}  // namespace

CoreChoice RestrictedCore::expand(const CoreChoice& choice) const {
  CoreChoice result(choice.size());
  for (std::size_t node = 0; node < choice.size(); ++node) result[node] = values[core.first_value[node] + choice[node]];
  return result;
}

CoreChoice RestrictedCore::nearest(const CoreChoice& whole) const {
  CoreChoice result(whole.size());
  for (std::size_t node = 0; node < whole.size(); ++node) {
    const auto begin = values.begin() + core.first_value[node];
    const auto end = values.begin() + core.first_value[node + 1];
    const auto same = std::find(begin, end, whole[node]);
    const auto costs = core.costs.begin() + core.first_value[node];
    result[node] =
        static_cast<std::uint32_t>(same != end ? same - begin : std::min_element(costs, costs + (end - begin)) - costs);
  }
  return result;
}

void RestrictedCore::count_values_as(const RestrictedCore& larger) {
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t at = core.first_value[node]; at < core.first_value[node + 1]; ++at) {
      values[at] = larger.values[larger.core.first_value[node] + values[at]];
    }
  }
}

std::optional<RestrictedCore> restrict_core(const CoreProblem& core, const std::vector<std::uint8_t>& alive,
                                            std::size_t most_entries) {
  RestrictedCore result;
  CoreProblem& to = result.core;
  to.big_m = core.big_m;
  to.first_value = {0};
  to.first_neighbour = core.first_neighbour;
  to.first_segment = core.first_segment;
  to.segments = core.segments;
  to.limits = core.limits;
  // Nodes that keep the same values, by their number; matrices are selected once for each pair of such lists.
  std::map<std::vector<std::uint32_t>, std::uint32_t> lists;
  std::vector<const std::vector<std::uint32_t>*> kept(core.num_nodes());
  std::vector<std::uint32_t> list_of(core.num_nodes());
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t value = 0; value < core.num_values(node); ++value) {
      if (!alive[core.first_value[node] + value]) continue;
      list.push_back(value);
      to.costs.push_back(core.costs[core.first_value[node] + value]);
      result.values.push_back(value);
    }
    SHARDPLAN_CHECK(!list.empty());
    to.first_value.push_back(static_cast<std::uint32_t>(to.costs.size()));
    const auto known = lists.try_emplace(std::move(list), static_cast<std::uint32_t>(lists.size())).first;
    kept[node] = &known->first;
    list_of[node] = known->second;
  }
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> matrix_of;  // never iterated over
  struct Pick {
    std::uint32_t matrix, row, column;  // nodes
  };
  std::vector<Pick> picks;
  std::size_t entries = 0;
  to.neighbours = core.neighbours;
  for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      CoreNeighbour& neighbour = to.neighbours[slot];
      const std::uint32_t row = neighbour.is_row ? node : neighbour.node;
      const std::uint32_t column = neighbour.is_row ? neighbour.node : node;
      const auto [at, is_new] = matrix_of.try_emplace({neighbour.matrix, list_of[row], list_of[column]},
                                                      static_cast<std::uint32_t>(picks.size()));
      if (is_new) {
        picks.push_back({neighbour.matrix, row, column});
        entries += kept[row]->size() * kept[column]->size();
        if (entries > most_entries) return std::nullopt;
      }
      neighbour.matrix = at->second;
    }
  }
  restrict_bytes(core, kept, list_of, to);
  auto matrices = std::make_shared<std::vector<CoreMatrix>>();
  matrices->reserve(picks.size());
  for (const Pick& item : picks) {
    matrices->push_back(pick((*core.matrices)[item.matrix], *kept[item.row], *kept[item.column]));
  }
  to.matrices = std::move(matrices);
  finish(to);
  return result;
}

}  // namespace shardplan
