#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// The graph with every written-out attention (graph/written_attention.h) replaced by one FlashAttention:
///
///     scores = BatchMatMul(q, k^T); Mul or RealDiv by constants; Add of a causal constant; Softmax over keys; Dropout;
///     context = BatchMatMul(probabilities, v)
///
/// Everything except the two products and the Softmax is optional. Products may be MatMuls and Einsums, with any
/// number of batch and head dimensions in any order:
///
///     scores = Einsum "bqhd,bkhd->bhqk"; ...; context = Einsum "bhqk,bkhd->bqhd"
///     grouped       "bkgsd,bktd->bkgst" and "bkgst,btkd->bskgd": each head of k serves a group of heads of q
///     of two parts  Add(Einsum "bshd,bthd->bhst", Einsum "bshr,btr->bhst"): q and k are the parts concatenated; parts
///                   of k that heads share are first repeated over these heads
///     biased        Add of a tensor that broadcasts to the scores: the bias of FlashAttention; several are added up
///
/// If dimensions are in another order, transposes and reshapes are inserted around FlashAttention; kernels that read
/// strides do these for free. It takes the name of the last product. Not replaced: scores that another operator reads
/// (or that are outputs), and operators for which the user gave a strategy or `recompute`.
OperatorGraph fuse_attention(const OperatorGraph& graph);

}  // namespace shardplan
