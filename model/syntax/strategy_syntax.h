#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "graph/operator_graph.h"

namespace shardplan {

/// Entries of strategies: how one tensor is cut. `where` names the owner in faults.

/// One entry: [2, 4], [{dp}, {mp}], "[{dp}, {}] unreduced={mp}", null, [], (2, 4), None.
std::optional<StrategyEntry> read_entry(const YamlDocument& document, const YamlNode& node, const std::string& where,
                                        std::vector<Diagnostic>& faults);

/// A list of entries: [[1, 8]], ((1, 8),), [null, []].
std::optional<std::vector<StrategyEntry>> read_entries(const YamlDocument& document, const YamlNode& node,
                                                       const std::string& where, std::vector<Diagnostic>& faults);

/// What a scalar holds in brackets: Python's tuples, text in quotes, the text of --set.
std::optional<YamlNode> read_brackets(const YamlDocument& document, const YamlNode& node, const std::string& where,
                                      std::vector<Diagnostic>& faults);

/// As the user would write it: "[2, 4]", "null".
std::string to_string(const StrategyEntry& entry);
/// Whether both mean the same, wherever they stand.
bool means_the_same(const StrategyEntry& a, const StrategyEntry& b);

/// Whether an entry shards a dimension; null does in all but the smallest models.
bool cuts(const StrategyEntry& entry);

}  // namespace shardplan
