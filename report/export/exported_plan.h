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

/// What all exports say of a plan.
struct ExportedPlan {
  std::vector<ExportedTensor> inputs;
  std::vector<ExportedTensor> parameters;   // as stored
  std::vector<ExportedTensor> states;       // under the parameter's name; under their own where they differ; no scalars
  std::vector<ExportedTensor> constraints;  // first results of forward contractions and lookups, once they are whole
  std::vector<ExportedTensor> outputs;
};
/// Throws InputError for a plan in which devices have tensors of their own (graph/per_device.h).
void refuse_own_tensors(const OperatorGraph& graph);
/// Refuses these as well.
ExportedPlan exported_plan(const Plan& plan);

/// The axes with all sub-axes that an export uses, as whole axes of a finer mesh.
RefinedAxes exported_axes(const Plan& plan, const ExportedPlan& exported);

/// For every dimension the refined axes that cut it, major to minor; nothing, with the reason in `why`, if they cannot
/// say it.
std::optional<std::vector<std::vector<std::string>>> dimension_axes(const TensorLayout& layout, const RefinedAxes& axes,
                                                                    std::string* why);

/// Nothing, or why a tool that cuts what it stores into equal pieces cannot hold this tensor.
std::string unequal_pieces(const ExportedTensor& tensor);

/// One entry of a table: its value in the target's words, or why there is none.
struct ExportedEntry {
  std::string name;  // with '*' for the index of each repeat, of which `indices` says the values
  std::string value;
  std::string problem;  // "wte.embedding_table [{hccs, pcie}, {}]; DTensor nests left to right"
  std::vector<std::vector<std::int64_t>> indices = {};  // by '*' of the name, ascending

  bool operator==(const ExportedEntry&) const = default;
};
/// Joins the copies of a repeat under the name with '*' if their values are equal and their indices are all
/// combinations of those of each '*'; others stay apart.
std::vector<ExportedEntry> fold_entries(const std::vector<ExportedEntry>& entries);

/// "gpt2-small, level 0, mesh pcie=2, hccs=4"
std::string export_title(const Plan& plan);

}  // namespace shardplan
