#include "report/text/layout_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "layouts/held_positions.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

using Align = TextTable::Align;
using Positions = std::vector<std::int64_t>;

constexpr std::int64_t kMostRows = 16;
constexpr std::int64_t kMostColumns = 8;
constexpr std::int64_t kMostDevices = 1024;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 20;  // of all dimensions, times devices
constexpr std::size_t kMostWidth = 96;
constexpr std::size_t kMostText = 14;  // of one list of ranges

/// Intervals of neighbouring numbers, as many of the first ones as a text of `kMostText` characters can show.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

Intervals intervals(const Positions& numbers) {
  Intervals result;
  for (const std::int64_t number : numbers) {
    if (!result.empty() && result.back().second + 1 == number) {
      result.back().second = number;
    } else if (result.size() > kMostText) {
      break;
    } else {
      result.emplace_back(number, number);
    }
  }
  return result;
}

Intervals intervals(const HeldPositions& held) {
  Intervals result;
  const std::int64_t length = held.interval_length();
  for (std::int64_t i = 0; i < held.size() && result.size() <= kMostText; i += length) {
    result.emplace_back(held[i], held[std::min(i + length, held.size()) - 1]);
  }
  return result;
}

/// "0-3", "0-1,4-5"; long lists end in dots.
std::string ranges_text(const Intervals& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    const std::string range = first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
    if (text.size() + range.size() > kMostText) return text + (text.empty() ? range : ",...");
    text += (text.empty() ? "" : ",") + range;
  }
  return text;
}

/// The sharded dimensions, most pieces first.
std::vector<std::size_t> sharded_dimensions(const TensorLayout& layout) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < layout.dimensions.size(); ++i) {
    if (layout.dimensions[i].is_sharded()) list.push_back(i);
  }
  std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
    return layout.dimensions[a].num_pieces() > layout.dimensions[b].num_pieces();
  });
  return list;
}

}  // namespace

std::string layout_grid(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::size_t indent) {
  const std::vector<std::size_t> sharded = sharded_dimensions(layout);
  std::int64_t positions = 0;
  for (const std::int64_t extent : shape) positions += extent;
  if (sharded.empty() || mesh.num_devices() > kMostDevices || positions > kMostPositions / mesh.num_devices())
    return {};
  const std::size_t down = sharded[0];
  const bool has_columns = sharded.size() > 1;
  const std::size_t across = has_columns ? sharded[1] : down;
  if (layout.dimensions[down].num_pieces() > kMostRows) return {};
  if (has_columns && layout.dimensions[across].num_pieces() > kMostColumns) return {};

  // The pieces in ascending order of their first position, and the ranks that hold each pair of them.
  std::map<Intervals, std::map<Intervals, Positions>> holders;
  std::vector<Intervals> fixed;  // the pieces of rank 0 in the further dimensions
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    const auto piece = [&](std::size_t dimension) {
      return intervals(HeldPositions(layout.dimensions[dimension], mesh, shape[dimension], point));
    };
    std::vector<Intervals> rest;
    for (std::size_t i = 2; i < sharded.size(); ++i) rest.push_back(piece(sharded[i]));
    if (point == 0) fixed = rest;
    if (rest != fixed) continue;
    holders[piece(down)][has_columns ? piece(across) : Intervals()].push_back(point);
  }

  std::vector<Align> columns{Align::kRight};
  std::vector<TextTable::Cell> head{has_columns ? fmt::format("dim {} \\ dim {}", down, across)
                                                : fmt::format("dim {}", down)};
  for (const auto& [piece, ranks] : holders.begin()->second) {
    columns.push_back(Align::kRight);
    head.push_back(has_columns ? ranges_text(piece) : "ranks");
  }
  TextTable table(columns);
  table.add(head);
  for (const auto& [piece, cells] : holders) {
    std::vector<TextTable::Cell> row{ranges_text(piece)};
    for (const auto& [other, ranks] : cells) row.push_back(ranges_text(intervals(ranks)));
    table.add(row);
  }
  std::string text = table.to_string(indent);
  if (text.find('\n') > kMostWidth) return {};
  const std::string margin(indent, ' ');
  for (std::size_t i = 2; i < sharded.size(); ++i) {
    text += fmt::format("{}at {} of dim {}\n", margin, ranges_text(fixed[i - 2]), sharded[i]);
  }
  if (!layout.partial.empty()) {
    text += fmt::format("{}each rank holds one {} over {}\n", margin,
                        layout.reduction == Reduction::kSum ? "summand" : "argument", mesh.to_string(layout.partial));
  }
  return text;
}

}  // namespace shardplan
