#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "layouts/device_mesh.h"

namespace shardplan {

/// How the groups of one collective lie on one level of links. On 2 nodes of 8 with dp=4, mp=4 a dp group has two
/// devices on each node: at the level of the nodes members = 2, below = 2; all 8 devices of a node cross (4 groups), so
/// an uplink that the node shares is cut in 8, or in 4 when each group runs as one ring.
struct LevelSpan {
  std::size_t level = 0;              // which of the cluster's levels, outermost 0
  std::int64_t members = 1;           // parts of a group that this level joins; at least 2 in a GroupSpan
  std::int64_t below = 1;             // devices of the group in each part (in the smallest)
  std::int64_t crossing_devices = 1;  // devices of one part, of all groups, that talk across this level
  std::int64_t crossing_groups = 1;   // groups of which one part has devices that talk across this level
  std::int64_t peers = 0;             // devices of its group that one device meets at this level and not further in

  // Of a group's members that differ at this level alone, which have the places 0 to count - 1 along it (a ring or a line of
  // links, where they pass on messages of others):
  std::int64_t distance = 0;     // from the first to the last place
  std::int64_t overlapping = 1;  // groups between whose first and last place one link is
  std::int64_t around = 1;       // groups that have members on the same ring

  bool operator==(const LevelSpan&) const = default;
};

/// A group described level by level, outermost first; levels that no group crosses are left out. All groups of a
/// collective run at once. Where groups differ (devices out of order, a mesh that does not follow the levels) each
/// figure is the worst of all groups, and `is_uniform` is false.
struct GroupSpan {
  std::int64_t size = 1;
  bool is_uniform = true;  // every part at every level has the same number of parts, the product of all is `size`
  std::vector<LevelSpan> levels;

  bool operator==(const GroupSpan&) const = default;
};

/// The place of each point of the mesh in the row-major order of the cluster's levels: through the mesh's device order
/// and the cluster's rank table. Empty: point r stands at r.
std::vector<std::int64_t> point_positions(const Cluster& cluster, const DeviceMesh& mesh);

/// The groups along `axes`. With `positions` empty and a mesh whose axes follow the levels this is arithmetic on the
/// few axes; otherwise all groups are walked.
GroupSpan group_span(const Cluster& cluster, const DeviceMesh& mesh, const std::vector<std::int64_t>& positions,
                     const std::vector<AxisRef>& axes);

}  // namespace shardplan
