#include "layouts/mindspore_layout.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/integer.h"
#include "layouts/layout_axes.h"
#include "layouts/refined_axes.h"

namespace shardplan {

std::optional<std::vector<std::vector<AxisRef>>> split_ranks(const DeviceMesh& mesh,
                                                             const std::vector<std::int64_t>& factors) {
  std::vector<std::vector<AxisRef>> pieces(factors.size() + 1);
  std::uint32_t axis = 0;
  std::int64_t before = 1;  // product of the digits of this axis that are already assigned
  for (std::size_t i = 0; i <= factors.size(); ++i) {
    const bool is_rest = i == factors.size();
    if (!is_rest && factors[i] < 1) return std::nullopt;
    for (std::int64_t left = is_rest ? INT64_MAX : factors[i]; left > 1;) {
      while (axis < mesh.axes().size() && before == mesh.axes()[axis].size) {
        ++axis;
        before = 1;
      }
      if (axis == mesh.axes().size()) {
        if (is_rest) break;
        return std::nullopt;
      }
      const std::int64_t room = mesh.axes()[axis].size / before;
      const std::int64_t taken = is_rest ? room : std::min(left, room);
      if (!is_rest && (left % taken != 0 || room % taken != 0)) return std::nullopt;
      pieces[i].push_back({axis, before, taken});
      before *= taken;
      if (!is_rest) left /= taken;
    }
  }
  return pieces;
}

std::optional<TensorLayout> layout_of_tuple(const std::vector<std::int64_t>& tuple, const DeviceMesh& mesh) {
  const auto pieces = split_ranks(mesh, tuple);
  if (!pieces) return std::nullopt;
  TensorLayout layout;
  for (std::size_t i = 0; i < tuple.size(); ++i) layout.dimensions.push_back({{{0, joined((*pieces)[i])}}});
  return layout;
}

std::optional<std::vector<std::int64_t>> tuple_of_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                         const Shape& shape) {
  const TensorLayout expected = canonical(layout, mesh, shape);
  std::vector<std::int64_t> tuple;
  for (const DimensionLayout& dimension : expected.dimensions) tuple.push_back(dimension.num_pieces());
  const auto expressed = layout_of_tuple(tuple, mesh);
  if (!expressed || canonical(*expressed, mesh, shape) != expected) return std::nullopt;
  return tuple;
}

std::string tuple_text(const std::vector<std::int64_t>& values) { return fmt::format("({})", fmt::join(values, ", ")); }

MindSporeLayout mindspore_layout(std::vector<std::int64_t> device_matrix, const std::vector<std::int64_t>& tensor_map) {
  MindSporeLayout layout{std::move(device_matrix), {}};
  for (const std::int64_t position : tensor_map) {
    layout.tensor_map.push_back(position == -1 ? std::vector<std::int64_t>{} : std::vector{position});
  }
  return layout;
}

std::string tensor_map_text(const MindSporeLayout& layout) {
  std::vector<std::string> entries;
  for (const std::vector<std::int64_t>& entry : layout.tensor_map) {
    entries.push_back(entry.empty() ? "-1" : entry.size() == 1 ? std::to_string(entry[0]) : tuple_text(entry));
  }
  return fmt::format("({})", fmt::join(entries, ", "));
}

std::string to_string(const MindSporeLayout& layout) {
  return tuple_text(layout.device_matrix) + ", " + tensor_map_text(layout);
}

TensorLayout layout_of(const MindSporeLayout& layout, const DeviceMesh& mesh) {
  const std::vector<std::int64_t>& matrix = layout.device_matrix;
  std::int64_t product = 1;
  for (const std::int64_t size : matrix) {
    if (size < 1) throw InputError({}, "device_matrix {}: found {}; expected at least 1", to_string(layout), size);
    product = checked_multiply(product, size).value_or(INT64_MAX);
  }
  if (product != mesh.num_devices()) {
    throw InputError({}, "device_matrix {} multiplies to {}, but there are {} devices", tuple_text(matrix), product,
                     mesh.num_devices());
  }
  const auto pieces = split_ranks(mesh, matrix);
  if (!pieces) {
    throw InputError({}, "device_matrix {} cannot be cut from the mesh {}", tuple_text(matrix), mesh.to_string());
  }
  TensorLayout result;
  std::set<std::int64_t> used;
  for (const std::vector<std::int64_t>& entry : layout.tensor_map) {
    std::vector<AxisRef> axes;
    for (const std::int64_t position : entry) {
      if (position < 0 || position >= static_cast<std::int64_t>(matrix.size())) {
        throw InputError({}, "tensor_map has {}; expected -1 to {} for a device_matrix of {}", position,
                         static_cast<std::int64_t>(matrix.size()) - 1, matrix.size());
      }
      if (!used.insert(position).second) throw InputError({}, "tensor_map has {} twice", position);
      const std::vector<AxisRef>& cut = (*pieces)[matrix.size() - 1 - static_cast<std::size_t>(position)];
      axes.insert(axes.end(), cut.begin(), cut.end());
    }
    result.dimensions.push_back({{{0, joined(axes)}}});
  }
  return result;
}

std::optional<MindSporeLayout> merged_mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                       const Shape& shape) {
  const TensorLayout expected = canonical(layout, mesh, shape);
  if (!expected.partial.empty()) return std::nullopt;
  // The devices as a list of pieces, each with its dimension and its order there; no position if it is unused.
  using Position = std::optional<std::pair<std::size_t, std::size_t>>;
  struct Piece {
    AxisRef axis;
    Position position;
  };
  std::vector<Piece> used;
  for (std::size_t d = 0; d < expected.dimensions.size(); ++d) {
    const std::vector<DimensionPart>& parts = expected.dimensions[d].parts;
    if (parts.size() > 1) return std::nullopt;
    for (std::size_t i = 0; i < parts[0].axes.size(); ++i) used.push_back({parts[0].axes[i], std::pair(d, i)});
  }
  std::sort(used.begin(), used.end(), [](const Piece& a, const Piece& b) { return a.axis < b.axis; });
  std::vector<Piece> row;
  std::size_t next = 0;
  for (std::uint32_t axis = 0; axis < mesh.axes().size(); ++axis) {
    std::int64_t at = 1;
    const auto fill_to = [&](std::int64_t before) {
      if (before > at) row.push_back({{axis, at, before / at}, std::nullopt});
      at = before;
    };
    for (; next < used.size() && used[next].axis.axis == axis; ++next) {
      fill_to(used[next].axis.before);
      row.push_back(used[next]);
      at *= used[next].axis.size;
    }
    fill_to(mesh.axes()[axis].size);
  }
  // Neighbours that are consecutive in one dimension, or both unused, become one entry of the matrix.
  MindSporeLayout result;
  std::vector<Position> first_position;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool continues = i > 0 && row[i].position.has_value() == row[i - 1].position.has_value() &&
                           (!row[i].position || (row[i].position->first == row[i - 1].position->first &&
                                                 row[i].position->second == row[i - 1].position->second + 1));
    if (continues) {
      result.device_matrix.back() *= row[i].axis.size;
    } else {
      result.device_matrix.push_back(row[i].axis.size);
      first_position.push_back(row[i].position);
    }
  }
  result.tensor_map.resize(shape.size());
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::int64_t>> placed;
  for (std::size_t i = 0; i < first_position.size(); ++i) {
    if (first_position[i])
      placed.push_back({*first_position[i], static_cast<std::int64_t>(first_position.size() - 1 - i)});
  }
  std::sort(placed.begin(), placed.end());
  for (const auto& [position, entry] : placed) result.tensor_map[position.first].push_back(entry);
  return result;
}

std::optional<MindSporeLayout> per_axis_mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh) {
  const RefinedAxes axes(mesh, axes_of(layout));
  MindSporeLayout result;
  for (const RefinedAxes::Axis& axis : axes.axes()) result.device_matrix.push_back(axis.size);
  for (const DimensionLayout& dimension : layout.dimensions) {
    if (dimension.is_sharded() && dimension.parts.size() != 1) return std::nullopt;
    std::vector<std::int64_t>& entry = result.tensor_map.emplace_back();
    for (const DimensionPart& part : dimension.parts) {
      for (const AxisRef& ref : part.axes) {
        const auto found = axes.find(ref);
        if (!found) return std::nullopt;
        for (const std::size_t i : *found) entry.push_back(static_cast<std::int64_t>(axes.axes().size() - 1 - i));
      }
    }
  }
  return result;
}

}  // namespace shardplan
