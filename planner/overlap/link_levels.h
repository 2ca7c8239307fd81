#pragma once

#include <vector>

#include "costmodel/cost_model.h"
#include "planner/plan.h"

namespace shardplan {

/// The levels of links that the mesh uses, in ascending order.
std::vector<int> used_levels(const CostModel& costs);

/// The one of these levels on which the plan's collectives take the most time in all.
int busiest_level(const std::vector<int>& levels, const Plan& plan);

/// The speeds that kernels and collectives keep beside each other, by level in `levels`.
std::vector<SpeedsTogether> speeds_of(const std::vector<int>& levels, const CostModel& costs);

}  // namespace shardplan
