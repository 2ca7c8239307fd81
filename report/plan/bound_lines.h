#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// Lines of the summary about what is known of better plans:
///
///     speed       172 ms     optimal within 10.9 %: no plan with uniform layers and mesh pieces 8 x 8, in any order,
///                            takes less than 155 ms
///
/// The value of the objective, how near it is to its bound, and which plans the bound covers, unless all.
std::string objective_line(const Plan& plan);
/// How much free layers could gain, if known; empty if layers are free or there are no copies.
std::string layers_line(const Plan& plan);

}  // namespace shardplan
