#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// FlashAttention with its keys cut in `pieces`, as operators one after the other: AttentionPart attends to each piece
/// and keeps its largest score, its sum of exponentials and its weighted values [t, b, g, r, s(, e)]; AttentionMax and
/// AttentionSum reduce them over the pieces; AttentionApply divides. `pieces` is by factor of the rule.
Phases attention_phases(const Operation& operation, std::span<const std::int64_t> pieces);

/// The operators that those phases are made of.
std::vector<OperatorType> attention_phase_operators();

}  // namespace shardplan
