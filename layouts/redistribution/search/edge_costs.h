#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// No step takes longer or sends more than this (10 hours, 32 PiB): what would is cut off, so that sums cannot
/// overflow.
inline constexpr std::int64_t kMostOfStep = std::int64_t{1} << 55;
/// What the members of a group hold together of what one holds `shard` bytes.
Bytes of_group(Bytes shard, std::int64_t group_size);

/// The prices of a graph's edges for tensors of one size, asked once each.
class PriceList {
 public:
  PriceList(const RedistributionGraph& graph, const CollectiveCosts& costs, Bytes tensor_bytes)
      : graph_(graph), costs_(costs), tensor_bytes_(tensor_bytes) {}

  struct Entry {
    Picoseconds time = -1;  // not asked yet
    Bytes sent = 0;         // by the busiest device
  };
  const Entry& operator[](std::uint32_t price);
  Bytes tensor_bytes() const { return tensor_bytes_; }

 private:
  const RedistributionGraph& graph_;
  const CollectiveCosts& costs_;
  Bytes tensor_bytes_;
  std::vector<Entry> entries_;
};

}  // namespace shardplan
