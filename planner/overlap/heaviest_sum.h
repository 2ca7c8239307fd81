#pragma once

#include <cstddef>
#include <vector>

#include "planner/overlap/overlap_weights.h"
#include "planner/overlap/step_bound.h"

namespace shardplan {

/// The largest of the sums (`StepBound::sum`) that several weights give the times of a choice. All sums are computed in
/// floating point first, which is faster, and only those that could be the largest exactly.
class HeaviestSum {
 public:
  HeaviestSum() = default;
  /// The weights must outlive it.
  explicit HeaviestSum(const std::vector<OverlapWeights>& weights);

  /// 0 without weights.
  Picoseconds of(const StepBound::Times& times) const;

 private:
  const std::vector<OverlapWeights>* weights_ = nullptr;
  std::size_t columns_ = 0;
  std::vector<double> shares_;  // columns_ for each of the weights, as parts of the whole
};

}  // namespace shardplan
