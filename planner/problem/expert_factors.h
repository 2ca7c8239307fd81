#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "graph/operator_graph.h"

namespace shardplan {

/// The factor that runs through a contraction's weight, all its other operands and its result: each of its values is a
/// product with a weight of its own, as of an expert. Nothing if there is none.
std::optional<std::uint32_t> stacked_factor(const ShardingRule& rule, std::size_t weight);

/// Experts in a graph: the factor that numbers weights stacked in one tensor, followed from these through all operators.
/// Weights of one matrix for each attention head (MLA's absorbed projections) are numbered alike, and are none.
struct ExpertFactors {
  IdVector<OperatorId, std::optional<std::uint32_t>> factors;  // by operator; nothing if it has none
  IdVector<TensorId, std::optional<std::uint8_t>> dimensions;  // by tensor: which one numbers experts
};
ExpertFactors find_experts(const OperatorGraph& graph);

}  // namespace shardplan
