#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "costmodel/cost_model.h"
#include "layouts/collective.h"

namespace shardplan {

/// Collectives that run as one bucket (program/buckets.h) have the same kind and the same groups.
struct BucketClass {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<AxisRef> axes;  // in mesh order and joined

  auto operator<=>(const BucketClass&) const = default;
};

/// Classes of which an edge's collectives count as if they ran alone.
struct AloneClasses {
  std::set<BucketClass> classes;
  bool are_all_others = false;  // all classes but these

  bool contains(CollectiveKind kind, const std::vector<AxisRef>& axes) const {
    const bool is_listed = !classes.empty() && classes.contains({kind, axes});
    return is_listed != are_all_others;
  }
};

/// A lower bound on the time of a collective that may share a bucket of any size with others (program/buckets.h): the
/// shares of all members of a bucket add up to no more than the bucket takes. If the time is a start-up plus a rate
/// (or the least of several such), that is the time its bytes add to the largest bucket; one member of each bucket
/// may then count as if it were alone (`alone`). If the times are measured, and so perhaps not concave in the bytes,
/// it is the least time per byte over all sizes. Kinds that are never joined take their own time.
///
/// With a `level`, only collectives that use its links count and others take nothing: collectives that share a level
/// never run at the same time, so their times can be added in a bound on the step.
class JoinedCosts final : public CollectiveCosts {
 public:
  static constexpr int kAnyLevel = -1;
  enum class Kinds { kReductions, kGathersToo };  // kinds that may be joined

  /// `costs` must outlive it.
  JoinedCosts(const CostModel& costs, Kinds kinds, int level, bool is_measured, AloneClasses alone = {})
      : costs_(costs),
        collectives_(costs.collectives()),
        kinds_(kinds),
        level_(level),
        is_measured_(is_measured),
        alone_(std::move(alone)) {}

  static bool may_join(Kinds kinds, CollectiveKind kind) {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter ||
           (kinds == Kinds::kGathersToo && kind == CollectiveKind::kAllGather);
  }

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
  AloneClasses alone_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<CollectiveKind, std::vector<AxisRef>>, std::vector<Ratio>> ratios_;
};

/// The times of `counted`, of the collectives that use a level of links or of those that do not; others take nothing.
class CostsOnLinks final : public CollectiveCosts {
 public:
  /// `costs` must outlive it.
  CostsOnLinks(const CostModel& costs, std::shared_ptr<const CollectiveCosts> counted, int level, bool is_on_level)
      : costs_(costs), counted_(std::move(counted)), level_(level), is_on_level_(is_on_level) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const override {
    const bool counts = ((costs_.links(axes) >> level_ & 1) != 0) == is_on_level_;
    return counts ? counted_->time(kind, axes, bytes) : 0;
  }

 private:
  const CostModel& costs_;
  std::shared_ptr<const CollectiveCosts> counted_;
  int level_;
  bool is_on_level_;
};

/// Costs that order paths first by the time of their collectives and then by a secondary sum, of the times of
/// `counted`. Programs take a path of least time (program/lower.h), so the secondary sum of the path they take is at
/// least that of the best path by these costs.
class CountedOnPath final : public CollectiveCosts {
 public:
  CountedOnPath(std::shared_ptr<const CollectiveCosts> own, std::shared_ptr<const CollectiveCosts> counted)
      : own_(std::move(own)), counted_(std::move(counted)) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes bytes) const override;

  /// The secondary sum of a path with cost `cost` by these costs, whose collectives take `time`; nothing if the path
  /// was found by a search that gave up and takes longer than the shortest one.
  static Picoseconds counted(Picoseconds cost, Picoseconds time);

 private:
  std::shared_ptr<const CollectiveCosts> own_;
  std::shared_ptr<const CollectiveCosts> counted_;
};

}  // namespace shardplan
