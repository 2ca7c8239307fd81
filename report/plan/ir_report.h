#pragma once

#include <cstdint>
#include <string>

#include "planner/plan.h"

namespace shardplan {

/// step_parallel_begin.ir: the model's operators with full shapes and their strategies, nothing inserted. The lines and
/// field names are MindSpore's; what we add stands in '#' lines.
std::string begin_report(const Plan& plan);

/// step_parallel_end.ir: the program of one rank with local shapes; every inserted operator is named by where it is
/// from. Requires `rank` to be one of the mesh's.
std::string end_report(const Plan& plan, std::int64_t rank = 0);

}  // namespace shardplan
