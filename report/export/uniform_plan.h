#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// A plan that global degrees describe: every weight and its operator are cut into `tensor` pieces, the batch into
/// `data`, the sequence into `context`; together these are all devices. Frameworks with one setting for the whole model
/// run these.
struct UniformPlan {
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  bool sequence = false;  // norms cut the sequence over the axes of `tensor` (sequence parallel)
  int zero = 0;           // 1: states cut over `data` too; 2: summed gradients as well; 3: stored weights as well

  std::int64_t micro_batch = 1;   // rows of the batch that a device takes at once
  std::int64_t global_batch = 1;  // rows of a step
  /// In what the plan is not this one, one line each, copies of a repeat in one: "layers.*.attn.proj.matmul: weight in
  /// 1, batch in 8". Empty if the plan is of this kind.
  std::vector<std::string> differences;
};

/// The uniform plan that most of the plan's operators and bytes follow.
UniformPlan nearest_uniform_plan(const Plan& plan);

}  // namespace shardplan
