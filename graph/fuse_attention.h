#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// The graph in which every attention that is written out (graph/written_attention.h) is one FlashAttention:
///
///     scores = BatchMatMul(q, k^T); Mul or RealDiv by constants; Add of a causal constant; Softmax over keys; Dropout;
///     context = BatchMatMul(probabilities, v)
///
/// All but the two products and Softmax may be absent. Products may be MatMuls and Einsums, of any number of batch and head
/// dimensions in any order:
///
///     scores = Einsum "bqhd,bkhd->bhqk"; ...; context = Einsum "bhqk,bkhd->bqhd"
///     grouped       "bkgsd,bktd->bkgst" and "bkgst,btkd->bskgd": heads of q are k's times those of a group
///     of two parts  Add(Einsum "bshd,bthd->bhst", Einsum "bshr,btr->bhst"): q and k are the parts side by side, which for
///                   k are first repeated over the heads that they are equal for
///     biased        Add of a tensor that broadcasts to the scores: the bias of FlashAttention, of several their sum
///
/// Transposes and reshapes stand around FlashAttention where dimensions are in another order, which kernels that read strides
/// do for nothing. It takes the name of the last product. Left as they are: scores that something else reads (or that are
/// outputs), and operators to which the user gave a strategy or `recompute` of their own.
OperatorGraph fuse_attention(const OperatorGraph& graph);

}  // namespace shardplan
