#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The fused collectives for `plan --verbose`: a table of the program's buckets with the time of each and of its
/// members run separately, then `fusion_ids`. Empty if the plan has neither.
std::string fusion_report(const Plan& plan);

/// One line for each trained parameter, in the format of MindSpore's document on communication fusion:
///
///   The parameter head.weight's fusion id is 0                the user's (`comm_fusion` of a block or parameter)
///   The parameter body.weight is in bucket 2                  of its gradient, if the parameter has no id of its own
///   The parameter tail.weight is in no bucket
///
/// Empty if no parameter has an id.
std::vector<std::string> fusion_ids(const Plan& plan);

/// "bucket2: 12 all_reduce in one" for the members of a bucket.
std::string bucket_name(const ParallelProgram& program, std::uint32_t fusion);

}  // namespace shardplan
