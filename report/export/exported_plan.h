#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/refined_axes.h"
#include "planner/plan.h"
#include "report/text/strategy_text.h"

namespace shardplan {

/// A tensor whose layout is exported, under the name that users look for.
struct ExportedTensor {
  std::string name;
  TensorType type;
  TensorLayout layout;
};

/// The parts of a plan that all exports contain.
struct ExportedPlan {
  std::vector<ExportedTensor> inputs;
  std::vector<ExportedTensor> parameters;  // as stored
  std::vector<ExportedTensor> states;      // under the parameter's name, or their own if layouts differ; no scalars
  /// First results of forward contractions and lookups, and of other operators before which the plan redistributes what
  /// they read, once they are whole, under the operator's name.
  std::vector<ExportedTensor> constraints;
  std::vector<ExportedTensor> outputs;
};
/// Throws InputError for a plan in which devices have tensors of their own (graph/per_device.h).
void refuse_own_tensors(const OperatorGraph& graph);
/// Also throws InputError for such a plan.
ExportedPlan exported_plan(const Plan& plan);

/// The mesh's axes, refined so that every sub-axis that an export uses is a whole axis.
RefinedAxes exported_axes(const Plan& plan, const ExportedPlan& exported);

/// For every dimension the refined axes that shard it, major to minor. Empty, with the reason in `why`, if they cannot
/// express the layout.
std::optional<std::vector<std::vector<std::string>>> dimension_axes(const TensorLayout& layout, const RefinedAxes& axes,
                                                                    std::string* why);

/// Why a tool that stores only equal pieces cannot hold this tensor; empty if it can.
std::string unequal_pieces(const ExportedTensor& tensor);

/// One entry of a table: its value in the target's notation, or why there is none.
struct ExportedEntry {
  std::string name;  // with '*' for the index of each repeat; `indices` has their values
  std::string value;
  std::string problem;  // "wte.embedding_table [{hccs, pcie}, {}]; DTensor nests left to right", or empty
  std::vector<std::vector<std::int64_t>> indices = {};  // for each '*' of the name, ascending

  bool operator==(const ExportedEntry&) const = default;
};
/// Joins the copies of a repeat under the name with '*' if their values are equal and their indices are all
/// combinations of the values at each '*'. Other entries stay separate.
std::vector<ExportedEntry> fold_entries(const std::vector<ExportedEntry>& entries);

/// What layouts do not say of a training step, which the user's program must do itself: "gradients are summed over 8
/// micro-batches", "recomputed in the backward pass: layers.*".
std::vector<std::string> left_to_the_program(const Plan& plan);
/// What is recomputed in the backward pass: the names that the training lists, then the blocks and operators that are
/// marked otherwise, copies of a repeat joined.
std::vector<std::string> recomputed_names(const Plan& plan);
/// Each recomputed block or operator by its full name: "layers.0", "layers.1".
std::vector<std::string> recomputed_scopes(const OperatorGraph& graph);
/// "recomputed in the backward pass: layers.*"; nothing if nothing is.
std::optional<std::string> recomputed_operators(const Plan& plan);
/// Weights of two or more dimensions that a training step leaves as they are: "not trained: layers.*.attn.q.weight".
std::optional<std::string> untrained_weights(const Plan& plan);

/// "gpt2-small, level 0, mesh pcie=2, hccs=4"
std::string export_title(const Plan& plan);

}  // namespace shardplan
