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

/// What collectives take at least that may run as one with others in a bucket of any size (program/buckets.h): the shares of
/// all members add up to no more than the bucket takes. Where time is a start-up and a rate, or the least of several, that
/// is what the bytes add to the largest bucket, and one member of each bucket may count as if alone instead. Where times
/// are measured, and so perhaps not concave in the bytes, it is the least share by bytes over all sizes. Kinds that are
/// never joined take what they take alone.
///
/// With a `level` only collectives that use its links count, others take nothing: those that share a level never run at the
/// same time, so that their times may be added in a bound on the step.
class JoinedCosts final : public CollectiveCosts {
 public:
  static constexpr int kAnyLevel = -1;
  enum class Kinds { kReductions, kGathersToo };  // that join

  /// `costs` must outlive it.
  JoinedCosts(const CostModel& costs, Kinds kinds, int level, bool is_measured)
      : costs_(costs), collectives_(costs.collectives()), kinds_(kinds), level_(level), is_measured_(is_measured) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const override;

 private:
  /// From so many bytes on, each takes at least `time` / `bytes`.
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

/// Costs by which the shortest paths are those by the time that collectives take, and of these the ones of the least sum of
/// something else: of the times of `counted`, of all collectives, of those that use a level of links or of those that do not.
/// Programs take one of the shortest paths (program/lower.h); what it takes of that something is no less than here.
class CountedOnPath final : public CollectiveCosts {
 public:
  enum class Which { kAll, kOnLevel, kOffLevel };

  /// `costs` must outlive it.
  CountedOnPath(const CostModel& costs, std::shared_ptr<const CollectiveCosts> counted, Which which, int level)
      : costs_(costs), collectives_(costs.collectives()), counted_(std::move(counted)), which_(which), level_(level) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const override;

  /// What counts of a path of cost `cost` by these costs whose collectives take `time`; nothing of one that was found
  /// by a search that gave up, and takes longer than the shortest.
  static Picoseconds counted(Picoseconds cost, Picoseconds time);

 private:
  const CostModel& costs_;
  std::shared_ptr<const CollectiveCosts> collectives_;
  std::shared_ptr<const CollectiveCosts> counted_;
  Which which_;
  int level_;
};

}  // namespace shardplan
