#pragma once

#include <cstdint>
#include <string>

#include "planner/plan.h"

namespace shardplan {

/// step_parallel_begin.ir: the model's operators with full shapes and their strategies, without inserted operators. The
/// lines and field names are MindSpore's; our additions are in '#' lines.
std::string begin_report(const Plan& plan);

/// step_parallel_end.ir: the program of one rank with local shapes; the name of every inserted operator says where it
/// comes from. Requires `rank` to be one of the job's devices. With `place`: the program of the rank's worker.
std::string end_report(const Plan& plan, std::int64_t rank = 0);

/// worker_W.ir of a plan with `place`: the same for a worker's first device.
std::string worker_report(const Plan& plan, int worker);

}  // namespace shardplan
