#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// A tensor of written attention and the roles of its dimensions: 'a' for the first dimension of the scores, 'b' for
/// the second, ...; '*' for channels, which the scores do not have.
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
/// Grouped-query scores "abcde" are [batch, key heads, query heads of each key head, queries, keys]: `shared` is "ab",
/// `of_queries` "c", q "abcd*", k "abe*", v "abe*".
struct WrittenAttention {
  struct Product {
    AttentionTensor q, k;
  };
  std::vector<OperatorId> inner;  // the attention's operators except the last
  OperatorId last{0};             // computes the context
  std::vector<Product> products;
  AttentionTensor v;
  std::string context;           // dims of the result
  std::vector<TensorId> biases;  // tensors that broadcast to the scores
  // Additions of a causal mask to a bias, which are undone.
  std::vector<OperatorId> masked_biases;
  double scale = 1;
  bool is_causal = false;
  double keep_prob = 1;
  Shape scores;

  char queries() const { return static_cast<char>('a' + scores.size() - 2); }
  char keys() const { return static_cast<char>('a' + scores.size() - 1); }
  std::string shared;      // outer dims of the scores that keys or values have
  std::string of_queries;  // outer dims that only queries have
};

/// The attention around a Softmax, if it is complete: nothing else reads its intermediate results, the user gave none
/// of its operators a strategy or `recompute`, and all of them are on one worker.
std::optional<WrittenAttention> written_attention(const OperatorGraph& graph, OperatorId softmax);

/// Whether a Softmax stands between two products as that of attention does: its operand follows from a product, and its
/// result goes into one, through operators that keep the shape.
bool resembles_attention(const OperatorGraph& graph, OperatorId softmax);

/// An operator in what would be such an attention without a strategy or `recompute` that the user gave it. Nothing if
/// there is none.
std::optional<OperatorId> decided_in_attention(const OperatorGraph& graph, OperatorId softmax);

}  // namespace shardplan
