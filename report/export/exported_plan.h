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
  std::vector<ExportedTensor> states;       // under the parameter's name; under their own where they differ
  std::vector<ExportedTensor> constraints;  // results of forward contractions and lookups, once they are whole
  std::vector<ExportedTensor> outputs;
};
ExportedPlan exported_plan(const Plan& plan);

/// The axes with all sub-axes that an export uses, as whole axes of a finer mesh.
RefinedAxes exported_axes(const Plan& plan, const ExportedPlan& exported);

/// For every dimension the refined axes that cut it, major to minor; nothing, with the reason in `why`, if they cannot
/// say it.
std::optional<std::vector<std::vector<std::string>>> dimension_axes(const TensorLayout& layout, const RefinedAxes& axes,
                                                                    std::string* why);

/// One entry of a table: its value in the target's words, or why there is none.
struct ExportedEntry {
  std::string name;
  std::string value;
  std::string problem;  // "wte.embedding_table [{hccs, pcie}, {}]; DTensor nests left to right"

  bool operator==(const ExportedEntry&) const = default;
};
/// Joins copies of a repeat whose values are equal under the name with '*'; others stay apart.
std::vector<ExportedEntry> fold_entries(const std::vector<ExportedEntry>& entries);

/// A Python string.
std::string python_text(std::string_view text);
/// "(2, 4)", "(8,)".
std::string python_tuple(const std::vector<std::string>& items);

/// The mesh of the refined axes in Python: "(2, 4)" and "('pcie', 'hccs')".
struct PythonMesh {
  std::string sizes;
  std::string names;
};
PythonMesh python_mesh(const RefinedAxes& axes);

/// A dictionary with one entry a line; what cannot be said is a comment in it and is added to `cannot_say`.
std::string python_dictionary(std::string_view variable, const std::vector<ExportedEntry>& entries,
                              std::vector<std::string>& cannot_say);

/// "gpt2-small, level 0, mesh pcie=2, hccs=4"
std::string export_title(const Plan& plan);

}  // namespace shardplan
