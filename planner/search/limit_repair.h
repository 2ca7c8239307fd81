#pragma once

#include <vector>

#include "planner/problem/model_problem.h"
#include "program/memory_profile.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The problem's memory limits, lowered so that a choice whose program holds more than `most` bytes is out.
///
/// A search sees what lies in memory between two operators; what a redistribution holds while it runs is seen only in
/// the program. At each time at which the program holds more than `most`, the limit falls by that excess below what the
/// choice seems to hold there (or below the limit, if that is less). Other times keep their limits; none is raised.
/// Requires: `memory` is the profile of `program`, and `program` is what `choice` of `problem` was lowered to, whose
/// last time is the end of the step. `times` are those of the model's problem (`ModelProblem::times`): for a time that the
/// problem leaves out both of those around it are lowered.
std::vector<Bytes> lowered_limits(const StrategyProblem& problem, const ProblemTimes& times, const Choice& choice,
                                  const ParallelProgram& program, const MemoryProfile& memory, Bytes most);

}  // namespace shardplan
