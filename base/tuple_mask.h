#pragma once

#include <string>

namespace shardplan {

/// Python's tuples as values in YAML, also inside braces: `{op: ReLU, in: x, in_strategy: ((1, 8),)}`. YAML ends a
/// value in braces at its first comma, whatever parentheses are open. `mask_tuples` therefore replaces the characters
/// that mean something in YAML, within every pair of parentheses that begins a value, by control characters that mean
/// nothing; each by one, so that no place in the file moves. `unmask_tuples` turns them back in the text of a scalar.
///
/// Where a closing parenthesis is missing, the tuple ends before the bracket that closes what is around it, so that the
/// fault stays in one value. A text that holds control characters of its own is left as it is.
std::string mask_tuples(std::string text);
std::string unmask_tuples(std::string scalar);

}  // namespace shardplan
