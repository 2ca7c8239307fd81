#include "costmodel/torus.h"

#include <algorithm>

namespace shardplan {
namespace {

/// The larger of two fractions.
void raise(TorusTime& time, Int128 above, Int128 below) {
  if (above * time.below <= time.above * below) return;
  time.above = above;
  time.below = below;
}

}  // namespace

TorusDimension torus_dimension(bool is_ring, std::int64_t count, std::int64_t members, std::int64_t distance,
                               std::int64_t overlapping, std::int64_t around, Picoseconds hop, std::int64_t link_rate) {
  TorusDimension dimension;
  dimension.members = members;
  // Around a ring a group runs two rings in opposite directions, to and fro along a line it runs one.
  const bool goes_around = is_ring && around <= 2 * overlapping;
  dimension.latency = static_cast<Int128>(goes_around ? count / 2 : distance) * hop;
  dimension.rate =
      std::max<std::int64_t>(1, goes_around ? multiply_divide(link_rate, 2, around) : link_rate / overlapping);
  return dimension;
}

TorusTime torus_time(CollectiveKind kind, std::span<const TorusDimension> dimensions, std::int64_t below,
                     std::int64_t size) {
  TorusTime time;
  Int128 all = 1, rates = 0;
  for (const TorusDimension& dimension : dimensions) {
    time.latency += dimension.latency;
    all *= static_cast<Int128>(dimension.members);
    rates += static_cast<Int128>(dimension.rate);
  }
  // Of groups that are no boxes (devices out of order) there are fewer than the product.
  all = std::min<Int128>(all, size / below);
  const bool is_of_pieces = kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kCollectivePermute;
  if (!is_of_pieces) raise(time, all - 1, rates);
  for (const TorusDimension& dimension : dimensions) {
    const Int128 members = static_cast<Int128>(dimension.members);
    const Int128 rate = static_cast<Int128>(dimension.rate);
    const Int128 half = members / 2;
    switch (kind) {
      case CollectiveKind::kAllToAll:
        raise(time, half * (members - half), members * rate);
        break;
      case CollectiveKind::kCollectivePermute:
        raise(time, 2 * half * (members - half), members * rate);
        break;
      default:
        raise(time, members - 1, rate);
    }
  }
  const Int128 passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  time.latency *= passes;
  time.above *= passes * kPicosecondsPerSecond;
  time.below *= is_of_pieces ? static_cast<Int128>(size) : all * static_cast<Int128>(below);
  return time;
}

}  // namespace shardplan
