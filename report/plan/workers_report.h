#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// For a plan with `place`: the outermost blocks that each worker computes.
std::string placed_lines(const Plan& plan);

/// What each worker does in a step, how long it waits for others, and its memory peak.
std::string workers_table(const Plan& plan);

}  // namespace shardplan
