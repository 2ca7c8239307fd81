#pragma once

#include <stop_token>
#include <string_view>
#include <vector>

#include "planner/model_planner.h"

namespace shardplan {

/// The plans of levels 0, 1 and 2 by the search of that name, each as if asked for alone, then that of propagation at the
/// planner's own level. None of them `is_better` than the plan of another level in that level's objective, if it is among
/// its candidates: a level whose plan another one beats is searched again from there.
std::vector<Plan> plans_of_levels(const ModelPlanner& planner, std::string_view search, std::stop_token stop = {});

}  // namespace shardplan
