#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// The step in Chrome's trace event format, for Perfetto (ui.perfetto.dev) or chrome://tracing: one row of kernels, and
/// one for each level of links with the collectives whose outermost level it is. Of what runs with every micro-batch the
/// first run is shown; `args.runs` says how many there are. `args.critical`: whether the critical path of the step runs
/// through it, in one run at least (report/metrics/step_path.h). Times are microseconds.
/// Source of the format: "Trace Event Format", Google, 2016 (complete events, ph X; names of rows, ph M).
std::string chrome_trace(const Plan& plan);

}  // namespace shardplan
