#include "planner/overlap/joined_costs.h"

#include <algorithm>

#include "base/integer.h"

namespace shardplan {
namespace {

/// The largest bucket considered: 16 TiB.
constexpr int kMostBytesLog = 44;
/// Times are integer picoseconds, rounded for each stage of a collective. By this much the shares of all members may
/// exceed the bucket's time.
constexpr Picoseconds kRounding = 64;
/// Measured times are sampled at this many sizes per power of two.
constexpr int kSizesPerDoubling = 64;
/// This many picoseconds of the secondary sum weigh as much as one of the path's time.
constexpr Picoseconds kCountedForOne = Picoseconds{1} << 14;
/// A longer time (two seconds) counts nothing: such a path costs more than any step is allowed to (`step_cost`).
constexpr Picoseconds kLongestOnWay = Picoseconds{1} << 41;

}  // namespace

Picoseconds JoinedCosts::time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const {
  if (axes.empty()) return 0;
  if (level_ != kAnyLevel && (costs_.links(axes) >> level_ & 1) == 0) return 0;
  const Picoseconds alone = collectives_->time(kind, axes, bytes);
  if (!may_join(kinds_, kind) || bytes == 0 || alone_.contains(kind, axes)) return alone;
  const Picoseconds share = is_measured_ ? in_any(kind, axes, bytes) : in_largest(kind, axes, bytes);
  return std::clamp<Picoseconds>(share - kRounding, 0, alone);
}

// If times are concave in the bytes, what a member adds to a bucket is at least what it adds to the largest one.
Picoseconds JoinedCosts::in_largest(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const {
  const Picoseconds largest = collectives_->time(kind, axes, Bytes{1} << kMostBytesLog);
  const Picoseconds half = collectives_->time(kind, axes, Bytes{1} << (kMostBytesLog - 1));
  const Picoseconds rise = std::max<Picoseconds>(0, largest - half - kRounding);
  return static_cast<Picoseconds>(Int128{rise} * bytes >> (kMostBytesLog - 1));
}

// The least over sizes s_k <= s_(k+1) = (1 + 1/64) s_k: between two of them the time is at least that of the first,
// and the size at most that of the second.
Picoseconds JoinedCosts::in_any(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const {
  const std::lock_guard lock(mutex_);
  std::vector<Ratio>& ratios = ratios_[{kind, axes}];
  if (ratios.empty()) ratios = least_ratios(kind, axes);
  const auto above = std::upper_bound(ratios.begin(), ratios.end(), bytes,
                                      [](Bytes size, const Ratio& ratio) { return size < ratio.from; });
  if (above == ratios.begin()) return 0;
  const Ratio& ratio = *(above - 1);
  return static_cast<Picoseconds>(Int128{ratio.time} * bytes / ratio.bytes);
}

std::vector<JoinedCosts::Ratio> JoinedCosts::least_ratios(CollectiveKind kind, const std::vector<AxisRef>& axes) const {
  std::vector<Ratio> ratios;
  for (Bytes size = 1; size < Bytes{1} << kMostBytesLog;) {
    const Bytes next = std::max(size + 1, size + size / kSizesPerDoubling);
    const Picoseconds time = collectives_->time(kind, axes, size);
    ratios.push_back({size, std::max<Picoseconds>(0, time - kRounding), next});
    size = next;
  }
  for (std::size_t i = ratios.size() - 1; i-- > 0;) {
    Ratio& here = ratios[i];
    const Ratio& larger = ratios[i + 1];
    if (Int128{larger.time} * here.bytes < Int128{here.time} * larger.bytes) {
      here.time = larger.time;
      here.bytes = larger.bytes;
    }
  }
  return ratios;
}

Picoseconds CountedOnPath::time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const {
  if (axes.empty() || is_local(kind)) return 0;
  const Picoseconds on_way = std::min(kLongestOnWay, own_->time(kind, axes, bytes));
  return on_way * kCountedForOne + std::min(kLongestOnWay, counted_->time(kind, axes, bytes));
}

Picoseconds CountedOnPath::counted(Picoseconds cost, Picoseconds time) {
  const Int128 counted = Int128{cost} - Int128{time} * kCountedForOne;
  return counted > time ? 0 : static_cast<Picoseconds>(std::max<Int128>(0, counted));
}

}  // namespace shardplan
