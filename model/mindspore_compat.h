#pragma once

#include <vector>

#include "model/model.h"

namespace shardplan {

/// What MindSpore 1.7 documents for models that shard a block: "shard" works in PyNative mode on Ascend, under
/// AUTO_PARALLEL with sharding_propagation. Options that say something else are faults; search_mode becomes
/// sharding_propagation if the file does not choose one. What depends on the devices is checked later
/// (planner/job_cluster.h).
void check_mindspore_shard(ParallelOptions& parallel, std::vector<Diagnostic>& faults);

/// What it documents for models with `place`, of which `last` is one: it is not mixed with data_parallel,
/// semi_auto_parallel, auto_parallel, strategies or PyNative mode. Such options are faults.
void check_mindspore_place(const ParallelOptions& parallel, const Placed<int>& last, bool is_sharded,
                           std::vector<Diagnostic>& faults);

}  // namespace shardplan
