#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// The graph in which every attention that is written out is one FlashAttention:
///
///     scores = BatchMatMul(q, k^T); Mul or RealDiv by constants; Add of a causal constant; Softmax over keys; Dropout;
///     context = BatchMatMul(probabilities, v)
///
/// All but the two products and Softmax may be absent. Products may be Einsums, with heads and positions of operands and
/// context in any order (transposed then, which kernels that read strides do for nothing), of scores [batch, heads,
/// queries, keys]:
///
///     scores = Einsum "bqhd,bkhd->bhqk"; ...; context = Einsum "bhqk,bkhd->bqhd"
///
/// It takes the name of the last product. Left as they are: scores
/// that something else reads (or that are outputs), masks other than causal, and operators to which the user gave a
/// strategy or `recompute` of their own.
OperatorGraph fuse_attention(const OperatorGraph& graph);

}  // namespace shardplan
