#include "costmodel/cluster/cluster_mesh.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer.h"
#include "costmodel/cluster/group_span.h"

namespace shardplan {
namespace {

/// 1 if the number is prime or 1.
std::int64_t smallest_factor(std::int64_t number) {
  for (std::int64_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) return factor;
  }
  return 1;
}

}  // namespace

DeviceMesh make_mesh(const Cluster& cluster) {
  std::vector<MeshAxis> axes;
  for (const ClusterLevel& level : cluster.levels) {
    if (level.count > 1) axes.push_back({level.name, level.count});
  }
  return axes.empty() ? DeviceMesh() : DeviceMesh(std::move(axes));
}

DeviceMesh make_mesh(const Cluster& cluster, const std::vector<MeshAxis>& axes) {
  DeviceMesh mesh(axes);
  if (mesh.num_devices() != cluster.num_devices()) {
    throw InputError(SourcePlace{}, "mesh {} has {} devices, but {} has {}", mesh.to_string(), mesh.num_devices(),
                     cluster.name, cluster.num_devices());
  }
  return mesh;
}

std::vector<std::string> spanned_levels(const Cluster& cluster, const DeviceMesh& mesh, const AxisRef& axis) {
  std::vector<std::string> names;
  for (const LevelSpan& span : group_span(cluster, mesh, point_positions(cluster, mesh), {axis}).levels) {
    names.push_back(cluster.levels[span.level].name);
  }
  return names;
}

std::vector<AxisRef> search_pieces(const DeviceMesh& mesh, std::size_t most) {
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    if (mesh.axes()[axis].size > 1) pieces.push_back(mesh.whole(axis));
  }
  while (pieces.size() < most) {
    const auto innermost = std::find_if(pieces.rbegin(), pieces.rend(),
                                        [](const AxisRef& piece) { return smallest_factor(piece.size) > 1; });
    if (innermost == pieces.rend()) break;
    const std::int64_t major = smallest_factor(innermost->size);
    const AxisRef minor{innermost->axis, innermost->before * major, innermost->size / major};
    innermost->size = major;
    pieces.insert(innermost.base(), minor);
  }
  return pieces;
}

}  // namespace shardplan
