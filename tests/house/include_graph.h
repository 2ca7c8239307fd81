#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardplan {

/// One line `#include "to"` of the file `from`, both as paths from the project's top.
struct Include {
  std::string from;
  std::string to;

  auto operator<=>(const Include&) const = default;
};

/// Paths of all .h and .cc files in a folder and below, sorted, beginning with `folder` as given.
std::vector<std::string> sources_in(const std::filesystem::path& folder);
/// The quoted includes of all sources in the folders below `top`, with paths relative to `top`.
std::vector<Include> includes_in(const std::filesystem::path& top, const std::vector<std::string>& folders);

/// The quoted includes of a text.
std::vector<std::string> quoted_includes(const std::string& text);
/// The includes of a text in angle brackets.
std::vector<std::string> library_includes(const std::string& text);

/// "solver/bounds/dive.cc" -> "solver/bounds/dive": a header and its source are one unit.
std::string unit_of(const std::string& path);
/// "solver/bounds/dive.cc" -> "solver/bounds"
std::string folder_of(const std::string& path);
/// "solver/bounds/dive.cc" -> "solver"
std::string top_of(const std::string& path);

/// Which unit or folder includes which, each edge with the includes that cause it.
using IncludeGraph = std::map<std::string, std::map<std::string, std::set<Include>>>;

/// Between units.
IncludeGraph unit_graph(const std::vector<Include>& includes);
/// Between folders at any depth. A folder and its sub-folders may include each other: its own files hold both what its
/// sub-folders share and the interface to them.
IncludeGraph folder_graph(const std::vector<Include>& includes);

/// Includes of a file in a folder further to the right in `order`, or in none of them.
std::vector<Include> climbing(const std::vector<Include>& includes, const std::vector<std::string>& order);

/// One shortest cycle, as the includes that close it, in order; empty if there is none.
std::vector<Include> shortest_circle(const IncludeGraph& graph);

}  // namespace shardplan
