#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/refined_axes.h"
#include "report/export/exported_plan.h"

namespace shardplan {

/// A Python string literal.
std::string python_text(std::string_view text);
/// "(2, 4)", "(8,)".
std::string python_tuple(const std::vector<std::string>& items);
std::string python_tuple(const std::vector<std::int64_t>& items);

/// The mesh of the refined axes in Python: "(2, 4)" and "('pcie', 'hccs')".
struct PythonMesh {
  std::string sizes;
  std::string names;
};
PythonMesh python_mesh(const RefinedAxes& axes);

/// The range of a loop over ascending indices: "range(12)", "range(1, 12)", "(0, 3, 4)".
std::string python_indices(const std::vector<std::int64_t>& indices);
/// The name of the loop's variable at the n-th '*' of a name: i, j, k, ...
char python_index(std::size_t star);

/// A dictionary by name with one entry per line; a name with '*' becomes a comprehension over its copies. What cannot be
/// expressed becomes a comment, before the value that stands in for it if there is one, and is added to `cannot_say`.
std::string python_dictionary(std::string_view variable, const std::vector<ExportedEntry>& entries,
                              std::vector<std::string>& cannot_say);

/// A comment, always on one line.
std::string python_comment(std::string_view text);
/// A comment for each thing that the target cannot express; also adds them to `cannot_say`.
std::string python_refusals(const std::vector<std::string>& things, std::vector<std::string>& cannot_say);

}  // namespace shardplan
