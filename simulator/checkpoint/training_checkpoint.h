#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"
#include "simulator/execute/executor.h"

namespace shardplan {

/// The form of a checkpoint of what a program stores between steps, parameters and states, in the layouts in which it
/// stores them. Numbers are F64, as simulated devices hold them, so that a run goes on exactly.
CheckpointForm stored_form(const ParallelProgram& program, const OperatorGraph& graph, std::int64_t step,
                           std::uint64_t seed);

/// Writes what the devices hold at the end of a step; `form` is `stored_form` or `integrated` of it. Throws InputError.
void save_checkpoint(const std::string& folder, const CheckpointForm& form, const ParallelProgram& program,
                     const OperatorGraph& graph, const Executor& executor);

/// The form that brings a checkpoint to a plan: the tensors that the plan's program stores, in its layouts and in the
/// checkpoint's dtypes. States that the checkpoint does not hold are left out, which `notices` says, as it names
/// tensors that the plan does not have. Throws InputError with all faults: parameters that are missing, other shapes.
CheckpointForm form_for_plan(const Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph,
                             std::vector<std::string>& notices);

/// A checkpoint's numbers for a graph. States that it does not hold begin at zero.
struct LoadedTensors {
  std::map<TensorId, TensorValues> values;
  std::vector<std::string> notices;
};
/// Throws InputError as `form_for_plan`, and for dtypes that are no numbers.
LoadedTensors load_checkpoint(Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
