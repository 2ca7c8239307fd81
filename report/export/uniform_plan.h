#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "planner/problem/global_degrees.h"

namespace shardplan {

/// The degrees that most of the plan's operators and bytes follow.
GlobalDegrees nearest_degrees(const Plan& plan);

/// A plan of global degrees beside another one: every weight and its operator are cut into `tensor` pieces, the batch into
/// `data`, the sequence into `context`; together these are all devices.
struct UniformPlan {
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t context = 1;

  std::int64_t micro_batch = 1;   // rows of the batch that a device takes at once
  std::int64_t global_batch = 1;  // rows of a step
  /// In what the plan is not this one, one line each, copies of a repeat in one: "layers.*.attn.proj.matmul: weight in
  /// 1, batch in 8". Empty if the plan is of this kind.
  std::vector<std::string> differences;
};

UniformPlan uniform_plan(const Plan& plan, const GlobalDegrees& degrees);

}  // namespace shardplan
