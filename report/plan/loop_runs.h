#pragma once

#include <optional>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// When a step with micro-batches runs its loop again after the first run, the only one whose instructions have spans.
/// Where micro-batches overlap, others begin before.
struct OtherRuns {
  Picoseconds begin = 0;  // the end of the first run
  Picoseconds end = 0;    // of the last run
};
/// Empty without micro-batches. `spans` are those of `Plan::spans`; with a worker only its own instructions count.
std::optional<OtherRuns> other_runs(const Plan& plan, const std::vector<OverlappedTimeline::Span>& spans,
                                    std::optional<int> worker = {});

}  // namespace shardplan
