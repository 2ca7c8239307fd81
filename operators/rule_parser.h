#pragma once

#include <string_view>
#include <vector>

#include "operators/sharding_rule.h"

namespace shardplan {

/// Text to a rule; it can read what `to_string` prints, except windows. Names are separated by spaces, tensors by
/// commas:
///
///   "b s h, h f -> b s f"                     matmul; h is in no result and therefore summed
///   "b s (heads d) -> b heads s d"            a dimension that walks a product, major to minor
///   "n c h, c -> n c h 1; h: normalised"      "1": a dimension of size 1; behind ";" what cutting a factor means:
///                                             sum, max, min, normalised, whole ("h, w: whole"); else it passes through
///
/// Sizes come from the shapes; a product may have one factor whose size no other dimension gives. Throws InputError (no
/// place) if the text does not fit the shapes. Without `results` only factors of the operands are known.
ShardingRule parse_rule(std::string_view text, const std::vector<Shape>& operands,
                        const std::vector<Shape>& results = {});

}  // namespace shardplan
