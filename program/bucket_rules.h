#pragma once

#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "model/model.h"

namespace shardplan {

/// The bucket rule for each kind of collective in one attempt at an order; `kBest`: boundaries are searched.
struct BucketRules {
  CommFusion all_reduce, all_gather, reduce_scatter;

  const CommFusion& of(CollectiveKind kind) const {
    if (kind == CollectiveKind::kAllReduce) return all_reduce;
    return kind == CollectiveKind::kAllGather ? all_gather : reduce_scatter;
  }
  /// Whether boundaries are searched for any kind.
  bool is_searched() const;
};

/// The user's rules, with those of mode `kBest` (left to the schedule) replaced by the given mode and size.
BucketRules decided(const CommFusions& fusions, CommFusion::Mode mode, Bytes size = 0);

/// The bucket rules to try where the user leaves them open: none; sizes from 1 MiB to 1 GiB by halves and thirds (for
/// a long program a few of them); searched boundaries (program/best_buckets.h). Only the first rule if nothing is
/// left open.
std::vector<BucketRules> rules_to_try(const CommFusions& fusions, bool is_long);

}  // namespace shardplan
