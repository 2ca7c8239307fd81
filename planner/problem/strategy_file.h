#pragma once

#include <string>

#include "planner/plan.h"
#include "strategies/user_strategy.h"

namespace shardplan {

// What strategy_ckpt_save_file keeps and strategy_ckpt_load_file takes again: the strategies of a plan's operators and
// how inputs, parameters and states are stored, by name, on one mesh. Everything else of a plan follows from these or
// is searched again, so the model may have changed elsewhere. MindSpore keeps forward operators and parameters only;
// whoever wants the rest to be searched again deletes `training` and `states`, which models without training skip. A
// JSON document:
//
//   {"schema": "shardplan.strategies/1", "model": "mlp", "mesh": "dp=2, mp=4",
//    "operators": {"layer1.matmul": {"factors": {"m": "dp", "n": "mp"}}, ...},
//    "training": {"layer1.matmul.grad.x": {"factors": {...}}, ...},     of the backward pass and the updates
//    "inputs": {"image": "[{dp}, {}, {}, {}]", ...},
//    "parameters": {"layer1.weight": "[{mp}, {}]", ...},
//    "states": {"layer1.weight.momentum": "[{mp}, {}]", ...}}
//
// `factors` are the operator's own, as `shardplan operators MatMul` names them; those that are not cut are left out. An
// operator that passes a partial sum on has "partial": {"axes": "mp", "group": 0, "reduction": "sum"} too.

/// The text of a plan's strategy file.
std::string strategy_file_text(const Plan& plan);

/// Takes the strategies of the file `path` for the operators and tensors that it names. Sets `is_loaded` for those
/// operators. Throws InputError with all faults and their places in the file: no JSON, another mesh, names that the
/// graph does not have, strategies that are not legal, or that contradict what `decided` says already (both places).
void load_strategy_file(const std::string& path, const OperatorGraph& graph, const DeviceMesh& mesh,
                        UserStrategies& decided, IdVector<OperatorId, char>& is_loaded);

}  // namespace shardplan
