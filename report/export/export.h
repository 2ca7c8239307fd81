#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/model_planner.h"
#include "planner/plan.h"

namespace shardplan {

/// A plan in another tool's format: text that the tool accepts unchanged. Its first lines say how to use it.
struct ExportedText {
  std::string text;
  /// What the tool cannot express; each item is also a comment at its place in `text`.
  std::vector<std::string> cannot_say;
  /// Compares the cost of the nearest plan that the tool can express with this plan's, in a sentence; empty if equal.
  std::string nearest = {};
};

/// Python: `configure()` sets the context, `shard(net)` calls `shard` on every forward operator of a net.
ExportedText export_mindspore(const Plan& plan);
/// Exports a plan with `place` on workers of one device. Python: `configure()` joins the cluster, `place(net)` calls
/// `place` on every forward operator.
ExportedText export_mindspore_place(const Plan& plan);
/// Python: NamedShardings of inputs, parameters and optimizer states by name, `tree` for trees of them, and `constrain`
/// for the results inside a step.
ExportedText export_jax(const Plan& plan);
/// Python: PLAN for `parallelize_module`, placements of inputs and optimizer states.
ExportedText export_dtensor(const Plan& plan);
/// MLIR: the mesh, a function's signature with shardings, and a function for every result to constrain.
ExportedText export_shardy(const Plan& plan);

// Frameworks that only have global degrees (data and tensor parallel, ZeRO): the options of the nearest plan of that
// kind (planner/problem/global_degrees.h), where this plan differs from it, and its cost, as planned by `planner` at
// this plan's level. `planner` is the planner of this plan; with null the cost is left out.

/// A bash array of Megatron-LM's options.
ExportedText export_megatron(const Plan& plan, const ModelPlanner* planner);
/// A bash array of torchtitan's options.
ExportedText export_torchtitan(const Plan& plan, const ModelPlanner* planner);
/// Python: the dictionary that `deepspeed.initialize` takes as `config`.
ExportedText export_deepspeed(const Plan& plan, const ModelPlanner* planner);

/// A bash array of the engine arguments of vLLM, for a step that decodes.
ExportedText export_vllm(const Plan& plan, const ModelPlanner* planner);

/// The names that --to accepts.
std::vector<std::string> export_targets();
/// Throws InputError for other names, and for a plan with `place` that the target cannot express.
ExportedText export_plan(const Plan& plan, std::string_view target, const ModelPlanner* planner = nullptr);

}  // namespace shardplan
