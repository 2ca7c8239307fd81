#pragma once

#include <algorithm>

#include "layouts/redistribution.h"

namespace shardplan {

/// Whether a shard on the way is larger than both ends'. Such a plan is made only where no way within was found (for
/// about one in a hundred pairs of random layouts whose axes or parts have no common refinement), or if the bound was
/// lifted.
inline bool exceeds_larger_end(const Redistribution& plan) {
  const std::int64_t bound = std::min(num_shards(plan.from), num_shards(plan.to));
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const CollectiveStep& step) { return num_shards(step.after) < bound; });
}

}  // namespace shardplan
