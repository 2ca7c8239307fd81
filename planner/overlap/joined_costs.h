#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "costmodel/cost_model.h"
#include "layouts/collective.h"

namespace shardplan {

/// A lower bound on the time of a collective that may share a bucket of any size with others (program/buckets.h): the
/// shares of all members of a bucket add up to no more than the bucket takes. If the time is a start-up plus a rate
/// (or the least of several such), that is the time its bytes add to the largest bucket; one member of each bucket
/// may then count as if it were alone. If the times are measured, and so perhaps not concave in the bytes, it is the
/// least time per byte over all sizes. Kinds that are never joined take their own time.
///
/// With a `level`, only collectives that use its links count and others take nothing: collectives that share a level
/// never run at the same time, so their times can be added in a bound on the step.
class JoinedCosts final : public CollectiveCosts {
 public:
  static constexpr int kAnyLevel = -1;
  enum class Kinds { kReductions, kGathersToo };  // kinds that may be joined

  /// `costs` must outlive it.
  JoinedCosts(const CostModel& costs, Kinds kinds, int level, bool is_measured)
      : costs_(costs), collectives_(costs.collectives()), kinds_(kinds), level_(level), is_measured_(is_measured) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const override;

 private:
  /// From `from` bytes on, a member takes at least `time` / `bytes` per byte.
  struct Ratio {
    Bytes from = 0;
    Picoseconds time = 0;
    Bytes bytes = 1;
  };

  Picoseconds in_largest(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const;
  Picoseconds in_any(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const;
  std::vector<Ratio> least_ratios(CollectiveKind kind, const std::vector<AxisRef>& axes) const;

  const CostModel& costs_;
  std::shared_ptr<const CollectiveCosts> collectives_;
  Kinds kinds_;
  int level_;
  bool is_measured_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<CollectiveKind, std::vector<AxisRef>>, std::vector<Ratio>> ratios_;
};

/// Costs that order paths first by the time of their collectives and then by a secondary sum: of the times of
/// `counted`, over all collectives, those that use a level of links, or those that do not. Programs take a path of
/// least time (program/lower.h), so the secondary sum of the path they take is at least that of the best path by
/// these costs.
class CountedOnPath final : public CollectiveCosts {
 public:
  enum class Which { kAll, kOnLevel, kOffLevel };

  /// `costs` must outlive it.
  CountedOnPath(const CostModel& costs, std::shared_ptr<const CollectiveCosts> counted, Which which, int level)
      : costs_(costs), collectives_(costs.collectives()), counted_(std::move(counted)), which_(which), level_(level) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const override;

  /// The secondary sum of a path with cost `cost` by these costs, whose collectives take `time`; nothing if the path
  /// was found by a search that gave up and takes longer than the shortest one.
  static Picoseconds counted(Picoseconds cost, Picoseconds time);

 private:
  const CostModel& costs_;
  std::shared_ptr<const CollectiveCosts> collectives_;
  std::shared_ptr<const CollectiveCosts> counted_;
  Which which_;
  int level_;
};

}  // namespace shardplan
