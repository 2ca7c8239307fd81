#pragma once

#include <string>

#include "planner/infeasibility_analysis.h"

namespace shardplan {

/// What `shardplan plan` prints with exit code 4: how much is too much, what is alive at the peak by block, what would
/// fit, what is in the way.
std::string infeasibility_report(const Infeasibility& answer, bool colour = false);
std::string infeasibility_json(const Infeasibility& answer);

}  // namespace shardplan
