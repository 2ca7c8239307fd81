#include "layouts/uneven.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.h"

namespace shardplan {

std::int64_t largest_piece(std::int64_t extent, std::int64_t pieces) { return (extent + pieces - 1) / pieces; }

std::pair<std::int64_t, std::int64_t> piece_bounds(std::int64_t extent, std::int64_t pieces, std::int64_t position) {
  const std::int64_t size = largest_piece(extent, pieces);
  return {std::min(extent, position * size), std::min(extent, (position + 1) * size)};
}

bool can_be_split(std::int64_t extent, std::int64_t pieces) {
  return extent % pieces == 0 || (pieces <= extent && (pieces - 1) * largest_piece(extent, pieces) < extent);
}

bool nests(std::int64_t extent, std::int64_t pieces, std::int64_t fewer) {
  return fewer == 1 || largest_piece(extent, fewer) == pieces / fewer * largest_piece(extent, pieces);
}

bool is_uneven(const TensorLayout& layout, const Shape& shape) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] % layout.dimensions[d].num_pieces() != 0) return true;
  }
  return false;
}

Shape held_shape(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point) {
  Shape held = local_shape(layout, shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t pieces = layout.dimensions[d].num_pieces();
    if (shape[d] % pieces == 0) continue;
    const auto [begin, end] =
        piece_bounds(shape[d], pieces, mesh.coordinate(point, layout.dimensions[d].parts.front().axes));
    held[d] = end - begin;
  }
  return held;
}

std::string check_uneven_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  if (layout.dimensions.size() != shape.size() || !check_axes(layout, mesh).empty()) {
    return check_layout(layout, mesh, shape);
  }
  // The remaining checks have the same result on the tensor padded to equal pieces.
  Shape padded = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<DimensionPart>& parts = layout.dimensions[d].parts;
    const std::int64_t pieces = layout.dimensions[d].num_pieces();
    const bool is_one_part = parts.size() == 1 && (parts[0].size == 0 || parts[0].size == shape[d]);
    if (!is_one_part || shape[d] % pieces == 0 || pieces > shape[d]) continue;
    const std::int64_t size = largest_piece(shape[d], pieces);
    if (!can_be_split(shape[d], pieces)) {
      return fmt::format(
          "dimension {} of size {} cannot be split into {} by {}: pieces of {} would leave {} of them empty", d,
          shape[d], pieces, mesh.to_string(parts[0].axes), size, pieces - largest_piece(shape[d], size));
    }
    if (parts[0].size == 0) padded[d] = checked_multiply(size, pieces).value_or(shape[d]);
  }
  return check_layout(layout, mesh, padded);
}

}  // namespace shardplan
