#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// A plan in another tool's words.
struct ExportedText {
  std::string text;
  /// What the tool cannot say; each also stands as a comment at its place in `text`.
  std::vector<std::string> cannot_say;
};

/// Python: Layout objects and a `shard` call for every forward operator.
ExportedText export_mindspore(const Plan& plan);
/// Python: a mesh and PartitionSpecs of inputs, parameters, optimizer states, and results to constrain.
ExportedText export_jax(const Plan& plan);
/// Python: a device mesh and placements of the same.
ExportedText export_dtensor(const Plan& plan);
/// MLIR: the mesh and a function's signature with shardings.
ExportedText export_shardy(const Plan& plan);

/// The names that --to takes: "mindspore", "jax", "dtensor", "shardy".
std::vector<std::string> export_targets();
/// By such a name; throws InputError for others.
ExportedText export_plan(const Plan& plan, std::string_view target);

}  // namespace shardplan
