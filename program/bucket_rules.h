#pragma once

#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "model/model.h"

namespace shardplan {

/// What one attempt at an order joins, by kind of collective: `kBest` where boundaries are searched.
struct BucketRules {
  CommFusion all_reduce, all_gather, reduce_scatter;

  const CommFusion& of(CollectiveKind kind) const {
    if (kind == CollectiveKind::kAllReduce) return all_reduce;
    return kind == CollectiveKind::kAllGather ? all_gather : reduce_scatter;
  }
  /// Whether boundaries are searched for some kind.
  bool is_searched() const;
};

/// The user's rules with what they leave to the schedule (mode `kBest`) decided.
BucketRules decided(const CommFusions& fusions, CommFusion::Mode mode, Bytes size = 0);

/// How buckets are made where that is left to the schedule, rule by rule: none; sizes from 1 MiB to 1 GiB by halves and
/// thirds, of a long program a few of them; boundaries that are searched (program/best_buckets.h). The first
/// rule alone where nothing is left.
std::vector<BucketRules> rules_to_try(const CommFusions& fusions, bool is_long);

}  // namespace shardplan
