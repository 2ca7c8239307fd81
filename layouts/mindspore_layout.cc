#include "layouts/mindspore_layout.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/integer.h"
#include "layouts/index_digits.h"

namespace shardplan {

std::optional<std::vector<std::vector<AxisRef>>> split_ranks(const DeviceMesh& mesh,
                                                             const std::vector<std::int64_t>& factors) {
  std::vector<std::vector<AxisRef>> pieces(factors.size() + 1);
  std::uint32_t axis = 0;
  std::int64_t before = 1;  // of the axis, already given out
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
  const TensorLayout wanted = canonical(layout, mesh, shape);
  std::vector<std::int64_t> tuple;
  for (const DimensionLayout& dimension : wanted.dimensions) tuple.push_back(dimension.num_pieces());
  const auto said = layout_of_tuple(tuple, mesh);
  if (!said || canonical(*said, mesh, shape) != wanted) return std::nullopt;
  return tuple;
}

std::string to_string(const DeviceArrangement& arrangement) {
  // A tuple of one is written as in Python, with a comma.
  const auto tuple = [](const std::string& items, std::size_t count) {
    return fmt::format("({}{})", items, count == 1 ? "," : "");
  };
  std::string map;
  for (const std::vector<std::int64_t>& entry : arrangement.tensor_map) {
    if (!map.empty()) map += ", ";
    map += entry.empty()       ? std::string("-1")
           : entry.size() == 1 ? std::to_string(entry[0])
                               : tuple(fmt::format("{}", fmt::join(entry, ", ")), entry.size());
  }
  return tuple(fmt::format("{}", fmt::join(arrangement.device_matrix, ", ")), arrangement.device_matrix.size()) + ", " +
         tuple(map, arrangement.tensor_map.size());
}

TensorLayout layout_of_arrangement(const DeviceArrangement& arrangement, const DeviceMesh& mesh) {
  const std::vector<std::int64_t>& matrix = arrangement.device_matrix;
  std::int64_t product = 1;
  for (const std::int64_t size : matrix) {
    if (size < 1) throw InputError({}, "device_matrix {}: found {}; expected at least 1", to_string(arrangement), size);
    product = checked_multiply(product, size).value_or(INT64_MAX);
  }
  if (product != mesh.num_devices()) {
    throw InputError({}, "device_matrix ({}) multiplies to {}, but there are {} devices", fmt::join(matrix, ", "),
                     product, mesh.num_devices());
  }
  const auto pieces = split_ranks(mesh, matrix);
  if (!pieces) {
    throw InputError({}, "device_matrix ({}) cannot be cut from the mesh {}", fmt::join(matrix, ", "),
                     mesh.to_string());
  }
  TensorLayout layout;
  std::set<std::int64_t> used;
  for (const std::vector<std::int64_t>& entry : arrangement.tensor_map) {
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
    layout.dimensions.push_back({{{0, joined(axes)}}});
  }
  return layout;
}

std::optional<DeviceArrangement> arrangement_of_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                       const Shape& shape) {
  const TensorLayout said = canonical(layout, mesh, shape);
  if (!said.partial.empty()) return std::nullopt;
  // The devices as a row of pieces, and for each piece where it stands: dimension and position, or nowhere.
  struct Piece {
    AxisRef axis;
    std::optional<std::pair<std::size_t, std::size_t>> place;
  };
  std::vector<Piece> used;
  for (std::size_t d = 0; d < said.dimensions.size(); ++d) {
    const std::vector<DimensionPart>& parts = said.dimensions[d].parts;
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
  // Neighbours that stand side by side, or nowhere, are one entry of the matrix.
  DeviceArrangement arrangement;
  std::vector<std::optional<std::pair<std::size_t, std::size_t>>> first_place;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool continues = i > 0 && row[i].place.has_value() == row[i - 1].place.has_value() &&
                           (!row[i].place || (row[i].place->first == row[i - 1].place->first &&
                                              row[i].place->second == row[i - 1].place->second + 1));
    if (continues) {
      arrangement.device_matrix.back() *= row[i].axis.size;
    } else {
      arrangement.device_matrix.push_back(row[i].axis.size);
      first_place.push_back(row[i].place);
    }
  }
  arrangement.tensor_map.resize(shape.size());
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::int64_t>> placed;
  for (std::size_t i = 0; i < first_place.size(); ++i) {
    if (first_place[i]) placed.push_back({*first_place[i], static_cast<std::int64_t>(first_place.size() - 1 - i)});
  }
  std::sort(placed.begin(), placed.end());
  for (const auto& [place, position] : placed) arrangement.tensor_map[place.first].push_back(position);
  return arrangement;
}

}  // namespace shardplan
