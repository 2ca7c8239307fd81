#include "costmodel/send_costs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "costmodel/hierarchical_costs.h"

namespace shardplan {
namespace {

/// The position of a rank in the row-major order of the levels.
std::int64_t position_of(const Cluster& cluster, std::int64_t rank) {
  SHARDPLAN_CHECK(rank >= 0 && rank < cluster.num_devices());
  return cluster.position_of_rank.empty() ? rank : cluster.position_of_rank[static_cast<std::size_t>(rank)];
}

/// One direction of one link.
struct Load {
  Int128 bytes = 0;
  std::map<std::int64_t, std::int64_t> sends;  // by device
};

}  // namespace

Picoseconds sends_time(const Cluster& cluster, std::span<const DeviceSend> sends) {
  Picoseconds longest = 0;
  std::int64_t whole = cluster.num_devices();
  for (const ClusterLevel& level : cluster.levels) {
    const std::int64_t part = whole / level.count;
    std::map<std::pair<std::int64_t, bool>, Load> links;  // by device or part, and whether bytes go out
    for (const DeviceSend& send : sends) {
      const std::int64_t from = position_of(cluster, send.from);
      const std::int64_t to = position_of(cluster, send.to);
      if (from / whole != to / whole || from / part == to / part) continue;
      for (const auto& [end, is_out] : {std::pair(from, true), std::pair(to, false)}) {
        Load& load = links[{level.link_per == LinkPer::kGroup ? end / part : end, is_out}];
        load.bytes += send.bytes;
        ++load.sends[end];
      }
    }
    const std::int64_t share = multiply_divide(level.efficiency_ppm, level.contention_ppm, 1'000'000);
    const std::int64_t rate = std::max<std::int64_t>(1, multiply_divide(level.bandwidth, share, 1'000'000));
    for (const auto& [link, load] : links) {
      std::int64_t most = 0;
      for (const auto& [device, count] : load.sends) most = std::max(most, count);
      const auto bytes = static_cast<Bytes>(std::min<Int128>(load.bytes, INT64_MAX));
      const Picoseconds latency = multiply_divide(most, level.latency, 1);
      const Picoseconds transfer = multiply_divide(bytes, kPicosecondsPerSecond, rate);
      longest = std::max(longest, std::min(latency, kLongestTime) + std::min(transfer, kLongestTime));
    }
    whole = part;
  }
  return longest == 0 ? 0 : std::min(longest + cluster.collectives.launch, kLongestTime);
}

}  // namespace shardplan
