#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// Which collectives run as one, for `plan --verbose`: a table of the program's buckets with what each takes and what its
/// members would take alone, then `fusion_ids`. Empty if the plan has neither.
std::string fusion_report(const Plan& plan);

/// One line for each trained parameter, as MindSpore's document on communication fusion prints them:
///
///   The parameter head.weight's fusion id is 0                the user's (`comm_fusion` of a block or parameter)
///   The parameter body.weight is in bucket 2                  of its gradient, if it has no id of its own
///
/// Empty if no parameter has an id.
std::vector<std::string> fusion_ids(const Plan& plan);

/// "bucket2: 12 all_reduce in one" for the members of a bucket.
std::string bucket_name(const ParallelProgram& program, std::uint32_t fusion);

}  // namespace shardplan
