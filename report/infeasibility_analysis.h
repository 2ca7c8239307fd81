#pragma once

#include <stop_token>

#include "report/infeasibility_report.h"

namespace shardplan {

/// What would make the smallest plan of a model fit, and what the user decided that keeps it from fitting. Each answer
/// comes from planning the changed model anew within little work, and is given only if the plan found says so:
/// - two or four micro-batches, activations of the largest block or of a whole layer computed again, twice the nodes,
///   larger devices;
/// - every user strategy that costs memory, without it, and all of them together.
///
/// Requires: `smallest` (ModelPlanner::smallest) needs more than `smallest.usable`; it outlives the answer.
Infeasibility analyse_infeasibility(const Plan& smallest, std::stop_token stop = {});

}  // namespace shardplan
