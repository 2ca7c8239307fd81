#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// A tensor of written attention and what its dimensions are: 'a' the scores' first one, 'b' their second, ...; '*' channels,
/// which are of no score.
struct AttentionTensor {
  TensorId tensor{0};
  std::string dims;
};

/// The parts of one attention as a model writes it out:
///
///     scores  = scale * (q1 k1 + q2 k2 + ...) + biases (+ a causal mask)
///     weights = Dropout(Softmax(scores)) over the last dimension, the keys
///     context = weights v
///
/// Scores "abcde" of grouped-query attention are [batch, key heads, query heads of each, queries, keys]: `shared` is "ab",
/// `of_queries` "c", q "abcd*", k "abe*", v "abe*".
struct WrittenAttention {
  struct Product {
    AttentionTensor q, k;
  };
  std::vector<OperatorId> inner;  // its operators, all but the last
  OperatorId last{0};             // which makes the context
  std::vector<Product> products;
  AttentionTensor v;
  std::string context;           // dims of the result
  std::vector<TensorId> biases;  // of shapes that broadcast to the scores'
  // Additions of a causal mask to a bias, from which bias and mask are taken apart.
  std::vector<OperatorId> masked_biases;
  double scale = 1;
  bool is_causal = false;
  double keep_prob = 1;
  Shape scores;

  char queries() const { return static_cast<char>('a' + scores.size() - 2); }
  char keys() const { return static_cast<char>('a' + scores.size() - 1); }
  std::string shared;      // outer dims of the scores that keys or values have
  std::string of_queries;  // those that only queries have
};

/// The attention around a Softmax, if it is the whole of one: nothing else reads what lies between, the user gave no
/// operator of it a strategy or `recompute` of its own, and all of them are on one worker.
std::optional<WrittenAttention> written_attention(const OperatorGraph& graph, OperatorId softmax);

}  // namespace shardplan
