#pragma once

#include <string>

#include "planner/infeasibility_analysis.h"

namespace shardplan {

/// The output of `shardplan plan` with exit code 4: by how much the memory is exceeded, what is alive at the peak by
/// block, what would fit, and what prevents it.
std::string infeasibility_report(const Infeasibility& answer, bool colour = false);
std::string infeasibility_json(const Infeasibility& answer);

}  // namespace shardplan
