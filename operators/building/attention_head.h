#pragma once

#include <cstdint>
#include <vector>

namespace shardplan {

/// Rows of a matrix inside a larger tensor.
template <class Number>
struct RowsOf {
  Number* data = nullptr;
  std::int64_t stride = 0;  // between rows

  Number* row(std::int64_t i) const { return data + i * stride; }
};
using Rows = RowsOf<const double>;
using ResultRows = RowsOf<double>;

/// What is added to the scores of a head: a matrix [queries, keys], of which a stride of 0 repeats a row or a column.
template <class Number>
struct BiasOf {
  Number* data = nullptr;  // null: none
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;

  Number& at(std::int64_t query, std::int64_t key) const { return data[query * query_stride + key * key_stride]; }
};
using Bias = BiasOf<const double>;
using ResultBias = BiasOf<double>;

/// Which keys a query sees, and how scores become weights.
struct AttentionOptions {
  double scale = 1;             // what q k is multiplied by
  bool is_causal = false;       // a query sees keys at positions up to its own
  std::int64_t window = 0;      // and less than this many positions away; 0: any
  std::int64_t valid_keys = 0;  // those behind so many first ones are padding, which no query sees; 0: all are keys
  double keep_prob = 1;         // dropout of the weights
  std::uint64_t stream = 0;     // which stream its draws come from
};

/// One query head of one batch element, and the keys and values that it reads: q [queries, depth], k [keys, depth],
/// v [keys, width]. Positions are global: masks and draws do not depend on the piece that a device holds.
struct AttentionHead {
  Rows q, k, v;
  Bias bias;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t depth = 0;
  std::int64_t width = 0;
  std::vector<double> q_positions;  // by query
  std::vector<double> k_positions;  // by key
  std::int64_t first_key = 0;       // the number of key 0 of this piece
  std::uint64_t first_draw =
      0;  // the number of the draw for (query 0, key 0) of this piece in [batch, heads, queries, keys]
  std::uint64_t draws_per_query = 0;
};

/// Block by block with running maxima (Dao et al., FlashAttention, NeurIPS 2022): no more than a block of scores is
/// held. For each query: the sum of weights * v with weights exp(score - max), the largest score and the sum of the
/// weights (before dropout). A query that sees no key gets zeros and the maximum `kNoScore`. `sum_v` must be zero.
void attend(const AttentionHead& head, const AttentionOptions& options, ResultRows sum_v, double* max, double* sum);

/// The finite stand-in for the maximum of no score; every weight exp(kNoScore - score) is 0.
inline constexpr double kNoScore = -1e30;

/// The gradients, from the logarithm of each query's sum of exponentials; scores are computed again, block by block.
/// `delta` holds by query the sum of do * o, less the gradient of lse. Adds to dq, dk and dv, and to that of the bias if it
/// is wanted: the gradient of the scores after their scale.
void attend_backward(const AttentionHead& head, const AttentionOptions& options, Rows d_o, const double* lse,
                     const double* delta, ResultRows dq, ResultRows dk, ResultRows dv, ResultBias d_bias = {});

}  // namespace shardplan
