#pragma once

#include <vector>

#include "planner/problem/model_problem.h"
#include "program/memory_profile.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The problem's memory limits, lowered to exclude a choice whose program holds more than `most` bytes.
///
/// A search sees what is in memory between two operators; what a redistribution holds while it runs is only visible
/// in the program. At each time at which the program holds more than `most`, the limit is set that excess below what
/// the choice appears to hold there (or below the limit, if that is less). Other limits are kept; none is raised.
/// Requires: `memory` is the profile of `program`, and `program` is `choice` of `problem` as lowered, with the end of
/// the step as last time. `times` are those of the model's problem (`ModelProblem::times`): for a time that the
/// problem omits, both surrounding ones are lowered.
std::vector<Bytes> lowered_limits(const StrategyProblem& problem, const ProblemTimes& times, const Choice& choice,
                                  const ParallelProgram& program, const MemoryProfile& memory, Bytes most);

}  // namespace shardplan
