#pragma once

#include <optional>
#include <string_view>

#include "base/yaml.h"

namespace shardplan {

/// Text in brackets as the nodes that it would be in YAML: "((1, 8),)", "[[{dp}, {mp}], null]", "('MS_WORKER', 3)".
/// Round and square brackets both make lists, and a comma may end them; braces make sets of words, as YAML reads
/// {dp, mp}. Quotes round words are taken off, and null is YAML's.
///
/// Nodes stand where they are in the text if `at` is a plain scalar that holds it, and at `at` if it is quoted. Throws
/// InputError (no place): "')' is missing", "',' was not expected".
YamlNode parse_brackets(std::string_view text, const YamlNode& at);

/// True for text that `parse_brackets` is meant for.
bool is_in_brackets(std::string_view text);

/// The list that a scalar is in Python's brackets, "(2, 3)" or "([2, 3], [4])"; nothing for other nodes and for text that
/// merely begins with a bracket, as in "(a + b)*2".
std::optional<YamlNode> bracket_list(const YamlNode& node);

}  // namespace shardplan
