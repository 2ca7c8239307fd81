// Both directions walk over blocks of queries and keys. Of a block they pack k as [depth, keys] (and what else is needed
// transposed), so that scores, sums and gradients are five calls of one matrix product. Blocks in which no query sees a
// key are skipped, so a causal head costs half and a window costs its width.
#include "operators/building/attention_head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "operators/building/matrix_product.h"

namespace shardplan {
namespace {

constexpr std::int64_t kQueriesPerBlock = 64;
constexpr std::int64_t kKeysPerBlock = 128;

bool sees(const AttentionOptions& options, double query, double key) {
  if (options.is_causal && key > query) return false;
  return options.window == 0 || std::abs(query - key) < static_cast<double>(options.window);
}

/// A range of queries or keys and the positions in it.
struct Range {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  double first = 0;  // the least and the greatest position
  double last = 0;

  Range(std::int64_t at, std::int64_t end, std::int64_t most, const std::vector<double>& positions)
      : begin(at), size(std::min(most, end - at)) {
    const auto [least, greatest] = std::minmax_element(positions.begin() + begin, positions.begin() + begin + size);
    first = *least;
    last = *greatest;
  }
};

/// False if no query of the block sees a key of it.
bool may_see(const AttentionOptions& options, const Range& queries, const Range& keys) {
  if (options.is_causal && keys.first > queries.last) return false;
  if (options.window == 0) return true;
  const auto width = static_cast<double>(options.window);
  return queries.first - keys.last < width && keys.first - queries.last < width;
}

void copy_rows(const Rows& rows, const Range& range, std::int64_t columns, std::vector<double>& to) {
  to.resize(static_cast<std::size_t>(range.size * columns));
  for (std::int64_t i = 0; i < range.size; ++i) {
    std::copy_n(rows.row(range.begin + i), columns, to.begin() + i * columns);
  }
}

std::vector<double> transposed(const std::vector<double>& matrix, std::int64_t rows, std::int64_t columns) {
  std::vector<double> result(matrix.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result[static_cast<std::size_t>(j * rows + i)] = matrix[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return result;
}

void add_rows(const std::vector<double>& block, const Range& range, std::int64_t columns, double factor,
              const ResultRows& to) {
  for (std::int64_t i = 0; i < range.size; ++i) {
    double* row = to.row(range.begin + i);
    for (std::int64_t c = 0; c < columns; ++c) row[c] += factor * block[static_cast<std::size_t>(i * columns + c)];
  }
}

/// 1 / keep_prob where the weight is kept, 0 where it is dropped.
double draw(const AttentionHead& head, const AttentionOptions& options, std::int64_t query, std::int64_t key) {
  const std::uint64_t index =
      head.first_draw + static_cast<std::uint64_t>(query) * head.draws_per_query + static_cast<std::uint64_t>(key);
  const bool is_kept = static_cast<double>(mix(options.stream ^ index) >> 11) * 0x1p-53 < options.keep_prob;
  return is_kept ? 1 / options.keep_prob : 0;
}

/// scale * q k + bias of a block, minus infinity where a query does not see a key. `q` [queries, depth], `k` [depth, keys].
void score(const AttentionHead& head, const AttentionOptions& options, const Range& queries, const Range& keys,
           const std::vector<double>& q, const std::vector<double>& k, std::vector<double>& scores) {
  scores.assign(static_cast<std::size_t>(queries.size * keys.size), 0.0);
  multiply_add(queries.size, keys.size, head.depth, q.data(), k.data(), scores.data());
  std::size_t at = 0;
  for (std::int64_t i = 0; i < queries.size; ++i) {
    const double query = head.q_positions[static_cast<std::size_t>(queries.begin + i)];
    for (std::int64_t j = 0; j < keys.size; ++j, ++at) {
      const double key = head.k_positions[static_cast<std::size_t>(keys.begin + j)];
      const bool exists = options.valid_keys == 0 || head.first_key + keys.begin + j < options.valid_keys;
      if (!exists || !sees(options, query, key)) {
        scores[at] = -std::numeric_limits<double>::infinity();
        continue;
      }
      scores[at] *= options.scale;
      if (head.bias.data != nullptr) scores[at] += head.bias.at(queries.begin + i, keys.begin + j);
    }
  }
}

}  // namespace

void attend(const AttentionHead& head, const AttentionOptions& options, ResultRows sum_v, double* max, double* sum) {
  std::vector<double> q, k, v, scores, products;
  for (std::int64_t i0 = 0; i0 < head.queries; i0 += kQueriesPerBlock) {
    const Range queries(i0, head.queries, kQueriesPerBlock, head.q_positions);
    copy_rows(head.q, queries, head.depth, q);
    std::fill_n(max + i0, queries.size, kNoScore);
    std::fill_n(sum + i0, queries.size, 0.0);
    for (std::int64_t j0 = 0; j0 < head.keys; j0 += kKeysPerBlock) {
      const Range keys(j0, head.keys, kKeysPerBlock, head.k_positions);
      if (!may_see(options, queries, keys)) continue;
      copy_rows(head.k, keys, head.depth, k);
      copy_rows(head.v, keys, head.width, v);
      score(head, options, queries, keys, q, transposed(k, keys.size, head.depth), scores);
      for (std::int64_t i = 0; i < queries.size; ++i) {
        double* row = scores.data() + i * keys.size;
        const double before = max[i0 + i];
        max[i0 + i] = std::max(before, *std::max_element(row, row + keys.size));
        const double shrink = std::exp(before - max[i0 + i]);
        sum[i0 + i] *= shrink;
        double* sums = sum_v.row(i0 + i);
        for (std::int64_t c = 0; c < head.width; ++c) sums[c] *= shrink;
        for (std::int64_t j = 0; j < keys.size; ++j) {
          row[j] = std::exp(row[j] - max[i0 + i]);
          sum[i0 + i] += row[j];
          if (options.keep_prob < 1) row[j] *= draw(head, options, i0 + i, j0 + j);
        }
      }
      products.assign(static_cast<std::size_t>(queries.size * head.width), 0.0);
      multiply_add(queries.size, head.width, keys.size, scores.data(), v.data(), products.data());
      add_rows(products, queries, head.width, 1, sum_v);
    }
  }
}

void attend_backward(const AttentionHead& head, const AttentionOptions& options, Rows d_o, const double* lse,
                     const double* delta, ResultRows dq, ResultRows dk, ResultRows dv, ResultBias d_bias) {
  std::vector<double> q, k, v, dy, weights, d_weights, product;
  for (std::int64_t j0 = 0; j0 < head.keys; j0 += kKeysPerBlock) {
    const Range keys(j0, head.keys, kKeysPerBlock, head.k_positions);
    copy_rows(head.k, keys, head.depth, k);
    copy_rows(head.v, keys, head.width, v);
    const std::vector<double> k_columns = transposed(k, keys.size, head.depth);
    const std::vector<double> v_columns = transposed(v, keys.size, head.width);
    for (std::int64_t i0 = 0; i0 < head.queries; i0 += kQueriesPerBlock) {
      const Range queries(i0, head.queries, kQueriesPerBlock, head.q_positions);
      if (!may_see(options, queries, keys)) continue;
      copy_rows(head.q, queries, head.depth, q);
      copy_rows(d_o, queries, head.width, dy);
      score(head, options, queries, keys, q, k_columns, weights);
      d_weights.assign(weights.size(), 0.0);
      multiply_add(queries.size, keys.size, head.width, dy.data(), v_columns.data(), d_weights.data());
      // weights: what v was multiplied with; d_weights: the gradients of the scores.
      for (std::int64_t i = 0; i < queries.size; ++i) {
        for (std::int64_t j = 0; j < keys.size; ++j) {
          const auto at = static_cast<std::size_t>(i * keys.size + j);
          const double probability = std::exp(weights[at] - lse[i0 + i]);
          const double kept = options.keep_prob < 1 ? draw(head, options, i0 + i, j0 + j) : 1;
          d_weights[at] = probability * (d_weights[at] * kept - delta[i0 + i]);
          weights[at] = probability * kept;
          if (d_bias.data != nullptr) d_bias.at(i0 + i, j0 + j) += d_weights[at];
        }
      }
      product.assign(static_cast<std::size_t>(keys.size * head.width), 0.0);
      multiply_add(keys.size, head.width, queries.size, transposed(weights, queries.size, keys.size).data(), dy.data(),
                   product.data());
      add_rows(product, keys, head.width, 1, dv);
      product.assign(static_cast<std::size_t>(keys.size * head.depth), 0.0);
      multiply_add(keys.size, head.depth, queries.size, transposed(d_weights, queries.size, keys.size).data(), q.data(),
                   product.data());
      add_rows(product, keys, head.depth, options.scale, dk);
      product.assign(static_cast<std::size_t>(queries.size * head.depth), 0.0);
      multiply_add(queries.size, head.depth, keys.size, d_weights.data(), k.data(), product.data());
      add_rows(product, queries, head.depth, options.scale, dq);
    }
  }
}

}  // namespace shardplan
