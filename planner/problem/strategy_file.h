#pragma once

#include <string>

#include "base/rare_value.h"
#include "graph/tensor_versions.h"
#include "planner/plan.h"
#include "strategies/user_strategy.h"

namespace shardplan {

// The format of strategy_ckpt_save_file and strategy_ckpt_load_file: the strategies of a plan's operators, the layouts
// of inputs, parameters and states, and those in which tensors wait for their readers, by name, on one mesh. Loaded
// into the same model they give the same plan. What a file does not name is searched, so other parts of the model may
// have changed. MindSpore stores forward operators and parameters only; to have the rest searched again, delete
// `training` and `states`, which models without training skip. A JSON document:
//
//   {"schema": "shardplan.strategies/1", "model": "mlp", "mesh": "dp=2, mp=4",
//    "operators": {"layer1.matmul": {"factors": {"m": "dp", "n": "mp"}}, ...},
//    "training": {"layer1.matmul.grad.x": {"factors": {...}}, ...},     of the backward pass and the updates
//    "inputs": {"image": "[{dp}, {}, {}, {}]", ...},
//    "parameters": {"layer1.weight": "[{mp}, {}]", ...},
//    "states": {"layer1.weight.momentum": "[{mp}, {}]", ...},
//    "versions": {"layer1": {"forward": "[{dp}, {mp}]", "kept": "[{dp}, {mp}]", "backward": ...}, ...}}
//
// `factors` are the operator's, as `shardplan operators MatMul` names them; factors that are not sharded are omitted.
// An operator that passes a partial sum through also has "partial": {"axes": "mp", "group": 0, "reduction": "sum"}.
// The versions of a tensor (graph/tensor_versions.h): as delivered to forward readers, kept for the backward pass,
// delivered to backward readers, and as `output`. They hold where the file names the operators that make and read the
// tensor; versions that the tensor does not have in the model are skipped.

/// The text of a plan's strategy file.
std::string strategy_file_text(const Plan& plan);

/// What a file decides that is not part of `UserStrategies`.
struct LoadedStrategies {
  IdVector<OperatorId, char> is_loaded;                   // operators that it names
  IdVector<VersionId, RareValue<TensorLayout>> versions;  // empty: none is
};

/// Takes the strategies of the file `path` for the operators and tensors that it names. Throws InputError with all
/// errors and their places in the file: invalid JSON, another mesh, names that the graph does not have, strategies
/// that are not legal, or that contradict `decided` (with both places).
LoadedStrategies load_strategy_file(const std::string& path, const OperatorGraph& graph, const DeviceMesh& mesh,
                                    UserStrategies& decided);

}  // namespace shardplan
