#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// The step in Chrome's trace event format, for Perfetto (ui.perfetto.dev) or chrome://tracing: one row of kernels, and
/// one for each level of links with the collectives whose outermost level it is. Only the first run of each micro-batch
/// instruction is shown; `args.runs` is the number of runs. `args.critical`: whether the step's critical path
/// (report/metrics/step_path.h) contains one of them. Times are microseconds. Source of the format: "Trace Event
/// Format", Google, 2016 (complete events, ph X; names of rows, ph M).
std::string chrome_trace(const Plan& plan);

}  // namespace shardplan
