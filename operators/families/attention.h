#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// FlashAttention(q, k, v[, bias][, q_positions, k_positions]) -> o, lse: o = softmax(scale q k^T + bias) v by head, computed
/// block by block, and lse the logarithm of each query's sum of exponentials (f32), which the gradient reads instead of the
/// scores.
///
///   input_layout  BNSD: q [b, heads, s, d], k [b, kv_heads, t, d], v [b, kv_heads, t, e]; BSND: heads behind positions
///   heads         a multiple of kv_heads: head h reads key head h / (heads / kv_heads), so that grouped (and multi-query)
///                 attention is a walk of two factors, (g r) and g
///   bias          [b or 1, heads or 1, s or 1, t or 1], the same for all where it has 1 (real_shift of MindSpore's
///                 flash_attention_score, attn_bias of xFormers, bias of cuDNN's scaled dot product attention)
///   causal        a query sees keys at positions up to its own; positions count from 0 unless q_positions [s] and
///                 k_positions [t] (integers) are given; t need not be s
///   window        a query sees keys less than this many positions away; 0: all
///   keep_prob     dropout of the probabilities, by (seed, global index): the same on any mesh
///   result        o as q, with v's last dimension; lse [b, heads, s]; zeros for a query that sees no key
///
/// Batch, heads and queries are cut freely. Keys are cut in phases (flash-decoding): every device attends to its piece,
/// and the largest scores, the sums and the weighted values are reduced. d and e stay whole. FlashAttentionGrad
/// computes the scores again and adds up over queries (dk, dv), keys (dq), the heads of a group (dk, dv), and over what the
/// bias is the same for (dbias: the gradient of the scores, of which no more than this sum is held).
std::vector<OperatorType> attention_operators();

}  // namespace shardplan
