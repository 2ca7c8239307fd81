#pragma once

#include <string>

#include "planner/plan.h"
#include "strategies/user_strategy.h"

namespace shardplan {

// The format of strategy_ckpt_save_file and strategy_ckpt_load_file: the strategies of a plan's operators, and the
// layouts of inputs, parameters and states, by name, on one mesh. Everything else of a plan follows from these or is
// searched again, so other parts of the model may have changed. MindSpore stores forward operators and parameters
// only; to have the rest searched again, delete `training` and `states`, which models without training skip. A JSON
// document:
//
//   {"schema": "shardplan.strategies/1", "model": "mlp", "mesh": "dp=2, mp=4",
//    "operators": {"layer1.matmul": {"factors": {"m": "dp", "n": "mp"}}, ...},
//    "training": {"layer1.matmul.grad.x": {"factors": {...}}, ...},     of the backward pass and the updates
//    "inputs": {"image": "[{dp}, {}, {}, {}]", ...},
//    "parameters": {"layer1.weight": "[{mp}, {}]", ...},
//    "states": {"layer1.weight.momentum": "[{mp}, {}]", ...}}
//
// `factors` are the operator's, as `shardplan operators MatMul` names them; factors that are not sharded are omitted.
// An operator that passes a partial sum through also has "partial": {"axes": "mp", "group": 0, "reduction": "sum"}.

/// The text of a plan's strategy file.
std::string strategy_file_text(const Plan& plan);

/// Takes the strategies of the file `path` for the operators and tensors that it names, and sets `is_loaded` for
/// those operators. Throws InputError with all errors and their places in the file: invalid JSON, another mesh, names
/// that the graph does not have, strategies that are not legal, or that contradict `decided` (with both places).
void load_strategy_file(const std::string& path, const OperatorGraph& graph, const DeviceMesh& mesh,
                        UserStrategies& decided, IdVector<OperatorId, char>& is_loaded);

}  // namespace shardplan
