#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"
#include "simulator/execute/executor.h"

namespace shardplan {

/// The form of a checkpoint of a program's parameters and states, in the layouts in which it stores them between steps.
/// Numbers are F64, as on simulated devices, so that a run continues exactly.
CheckpointForm stored_form(const ParallelProgram& program, const OperatorGraph& graph, std::int64_t step,
                           std::uint64_t seed);

/// Writes the stored values at the end of a step; `form` is `stored_form` or `integrated` of it. Throws InputError.
void save_checkpoint(const std::string& folder, const CheckpointForm& form, const ParallelProgram& program,
                     const OperatorGraph& graph, const Executor& executor);

/// The form that redistributes a checkpoint to a plan: the tensors that the plan's program stores, in its layouts and
/// in the checkpoint's dtypes. States missing in the checkpoint are left out; `notices` names them, and tensors that
/// the plan does not have. Throws InputError with all faults: missing parameters, other shapes.
CheckpointForm form_for_plan(const Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph,
                             std::vector<std::string>& notices);

/// A checkpoint's values for a graph. States missing in the checkpoint start at zero, master copies as the loaded
/// parameters.
struct LoadedTensors {
  std::map<TensorId, TensorValues> values;
  std::vector<std::string> notices;
};
/// Throws InputError as `form_for_plan` does, and for dtypes that are not numbers.
LoadedTensors load_checkpoint(Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
