#include "planner/mesh_shapes.h"

#include <algorithm>

#include "costmodel/cluster/cluster_mesh.h"

namespace shardplan {
namespace {

std::size_t num_prime_factors(std::int64_t size) {
  std::size_t count = 0;
  for (std::int64_t factor = 2; size > 1; ++factor) {
    if (factor * factor > size) factor = size;
    for (; size % factor == 0; size /= factor) ++count;
  }
  return count;
}

/// All shapes that begin with `pieces`: `rest` is the unsplit rest of an axis, and `count` pieces are used in all.
void add_shapes(const DeviceMesh& mesh, AxisRef rest, std::size_t count, std::vector<AxisRef>& pieces,
                std::vector<std::vector<AxisRef>>& shapes) {
  std::size_t wanted_behind = 0;  // axes of which each takes one piece or more
  std::size_t most_behind = 0;
  for (std::size_t axis = rest.axis + 1; axis < mesh.axes().size(); ++axis) {
    wanted_behind += mesh.axes()[axis].size > 1 ? 1 : 0;
    most_behind += num_prime_factors(mesh.axes()[axis].size);
  }
  if (rest.size == 1) {
    if (rest.axis + 1 < mesh.axes().size()) {
      add_shapes(mesh, mesh.whole(rest.axis + 1), count, pieces, shapes);
    } else if (count == 0) {
      shapes.push_back(pieces);
    }
    return;
  }
  for (std::int64_t size = 2; size <= rest.size; ++size) {
    if (rest.size % size != 0) continue;
    const AxisRef minor{rest.axis, rest.before * size, rest.size / size};
    const std::size_t least = wanted_behind + (minor.size > 1 ? 1 : 0);
    if (count < 1 + least || count - 1 > num_prime_factors(minor.size) + most_behind) continue;
    pieces.push_back({rest.axis, rest.before, size});
    add_shapes(mesh, minor, count - 1, pieces, shapes);
    pieces.pop_back();
  }
}

}  // namespace

std::vector<std::vector<AxisRef>> mesh_shapes(const DeviceMesh& mesh, std::size_t most) {
  const std::vector<AxisRef> usual = search_pieces(mesh, most);
  std::vector<std::vector<AxisRef>> shapes;
  std::vector<AxisRef> pieces;
  if (!mesh.axes().empty()) add_shapes(mesh, mesh.whole(0), usual.size(), pieces, shapes);
  if (shapes.empty()) return {usual};
  std::stable_partition(shapes.begin(), shapes.end(), [&](const auto& shape) { return shape == usual; });
  return shapes;
}

}  // namespace shardplan
