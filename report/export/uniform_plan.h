#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "planner/problem/global_degrees.h"

namespace shardplan {

/// The degrees that most of the plan's operators and bytes follow.
GlobalDegrees nearest_degrees(const Plan& plan);

/// The axes of data parallelism over which what ZeRO shards at the stage of `degrees` is replicated, as by hybrid
/// sharding (HSDP): r, if weights are stored in 8 pieces over s on r=2, s=8. Empty unless more bytes are so stored than
/// over all devices.
std::vector<AxisRef> zero_replicas(const Plan& plan, GlobalDegrees degrees);

/// Whether most bytes of weights that ZeRO-3 gathers are kept so for the backward pass (reshard_after_forward: false).
bool keeps_gathered(const Plan& plan, GlobalDegrees degrees);

/// A plan with global degrees next to another plan: every weight and its operator are sharded into `tensor` pieces, the
/// batch into `data`, the sequence into `context`. The product of the degrees is the number of devices.
struct UniformPlan {
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t experts = 1;  // pieces of stacked weights by expert, over the same devices

  std::int64_t micro_batch = 1;   // rows of the batch that a device takes at once
  std::int64_t global_batch = 1;  // rows of a step
  /// Where the other plan differs from this one, one line each, copies of a repeat joined: "layers.*.attn.proj.matmul:
  /// weight in 1, batch in 8". Empty if the other plan is of this kind.
  std::vector<std::string> differences;
};

UniformPlan uniform_plan(const Plan& plan, GlobalDegrees degrees);

}  // namespace shardplan
