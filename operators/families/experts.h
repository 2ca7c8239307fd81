#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Mixtures of experts with a static capacity, for groups of tokens (a group is what one router decides for, as a rule
/// a sequence): g groups of t tokens, each to k of e experts, each expert with c slots for every group.
///
///   TopKRouter(logits [g, t, e]; k, normalise) -> gates [g, t, k], experts [g, t, k]
///       the k largest probabilities of the softmax, largest first (normalise: divided by their sum), and whose they are
///   ExpertSlots(experts [g, t, k]; num_experts, capacity) -> slots [g, t, k]
///       the place of each choice in its expert's queue, first choices before second ones, tokens in order; -1: dropped
///   Dispatch(x [g, t, h], experts, slots[, gates]) -> y [e, g, c, h]: tokens (times gates) at their slots, zeros elsewhere
///   Combine(y [e, g, c, h], experts, slots[, gates]) -> x [g, t, h]: the sum over a token's choices
///
/// Dispatch and Combine cut everything but k: groups, experts, slots, tokens (Dispatch: partial sums) and h. Groups cut
/// before and experts after is expert parallelism: the redistribution between them is an all_to_all.
/// Sources: Lepikhin et al., GShard, ICLR 2021; Fedus, Zoph, Shazeer, Switch Transformers, JMLR 23, 2022.
std::vector<OperatorType> expert_operators();

}  // namespace shardplan
