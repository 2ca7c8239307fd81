#pragma once

#include <cstdint>
#include <vector>

#include "layouts/collective.h"
#include "layouts/device_mesh.h"

namespace shardplan {

/// The number of the shard that a device holds: for two layouts with the same numbers of pieces, equal if and only if
/// the shards are.
std::int64_t shard_number(const TensorLayout& layout, const DeviceMesh& mesh, std::int64_t point);

/// For a collective_permute: the point from which each point receives its shard (itself if it keeps it). Every point
/// sends to exactly one, always within its group along `step.axes`; copies keep their shard where they can.
std::vector<std::int64_t> permute_sources(const CollectiveStep& step, const DeviceMesh& mesh);

}  // namespace shardplan
