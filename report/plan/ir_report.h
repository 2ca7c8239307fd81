#pragma once

#include <cstdint>
#include <string>

#include "planner/plan.h"

namespace shardplan {

/// step_parallel_begin.ir: the model's operators with full shapes and their strategies, nothing inserted. The lines and
/// field names are MindSpore's; what we add stands in '#' lines.
std::string begin_report(const Plan& plan);

/// step_parallel_end.ir: the program of one rank with local shapes; every inserted operator is named by where it is
/// from. Requires `rank` to be one of the job's devices. With `place`: what the rank's worker runs.
std::string end_report(const Plan& plan, std::int64_t rank = 0);

/// worker_W.ir of a plan with `place`: the same of a worker's first device.
std::string worker_report(const Plan& plan, int worker);

}  // namespace shardplan
