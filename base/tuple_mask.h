#pragma once

#include <string>

namespace shardplan {

/// Python tuples as values in YAML, also inside braces: `{op: ReLU, in: x, in_strategy: ((1, 8),)}`. YAML ends a value
/// in braces at its first comma, even inside parentheses. Within every pair of parentheses that begins a value,
/// `mask_tuples` therefore replaces each character that has a meaning in YAML by one control character that has none,
/// so that no place in the file moves. `unmask_tuples` restores the characters in the text of a scalar.
///
/// If a closing parenthesis is missing, the tuple ends before the closing bracket of the enclosing collection, so that
/// the fault stays within one value. A text that already contains such control characters is left as it is.
std::string mask_tuples(std::string text);
std::string unmask_tuples(std::string scalar);

}  // namespace shardplan
