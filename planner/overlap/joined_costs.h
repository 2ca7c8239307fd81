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

  /// `costs` must outlive it.
  JoinedCosts(const CostModel& costs, int level, bool is_measured)
      : costs_(costs), collectives_(costs.collectives()), level_(level), is_measured_(is_measured) {}

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
  int level_;
  bool is_measured_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<CollectiveKind, std::vector<AxisRef>>, std::vector<Ratio>> ratios_;
};

}  // namespace shardplan
