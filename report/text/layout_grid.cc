#include "report/text/layout_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "report/text/text_table.h"

namespace shardplan {
namespace {

using Align = TextTable::Align;
using Positions = std::vector<std::int64_t>;

constexpr std::int64_t kMostRows = 16;
constexpr std::int64_t kMostColumns = 8;
constexpr std::int64_t kMostDevices = 1024;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 20;  // of all dimensions, visited for each device
constexpr std::size_t kMostWidth = 96;

/// "0-3", "0-1,4-5": ascending numbers, neighbours joined; long lists end in dots.
std::string ranges_text(const Positions& numbers) {
  constexpr std::size_t kMost = 14;
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    const std::string run =
        end - begin == 1 ? std::to_string(numbers[begin]) : fmt::format("{}-{}", numbers[begin], numbers[end - 1]);
    if (text.size() + run.size() > kMost) return text + (text.empty() ? run : ",...");
    text += (text.empty() ? "" : ",") + run;
    begin = end;
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
  std::map<Positions, std::map<Positions, Positions>> holders;
  std::vector<Positions> fixed;  // the pieces of rank 0 in the further dimensions
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    std::vector<Positions> held = held_indices(layout, mesh, shape, point);
    std::vector<Positions> rest;
    for (std::size_t i = 2; i < sharded.size(); ++i) rest.push_back(held[sharded[i]]);
    if (point == 0) fixed = rest;
    if (rest != fixed) continue;
    holders[held[down]][has_columns ? held[across] : Positions()].push_back(point);
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
    for (const auto& [other, ranks] : cells) row.push_back(ranges_text(ranks));
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
