#pragma once

#include <cstdint>
#include <span>

#include "costmodel/cluster/cluster.h"

namespace shardplan {

/// What one device sends to another; devices are ranks of the cluster.
struct DeviceSend {
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes bytes = 0;
};

/// Time of sends that all start at once. A send crosses one level of links, the outermost one on which its ends
/// differ: out through one end's link into that level, and in through the other's. A device that sends to itself
/// takes no time.
/// Formula:   the maximum, over all links and both directions, of (sends by one device) latency + (bytes on the link) /
///            (rate of the link), plus once the software's `launch`, since NCCL runs sends that start together as one
///            kernel. A link that devices share (`link_per: group`) carries the bytes of all of them. On a ring or line only
///            the links of the two ends count, not those in between.
/// Requires:  ranks below cluster.num_devices().
Picoseconds sends_time(const Cluster& cluster, std::span<const DeviceSend> sends);

}  // namespace shardplan
