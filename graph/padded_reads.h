#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"
#include "graph/padded_positions.h"

namespace shardplan {

/// The value without influence in the padding of an operand whose positions an operator combines.
struct Neutral {
  std::string_view type;
  std::size_t operand = 0;
  double value = 0;
  bool masks_gradient = false;  // false: the operator's own gradient is 0 in the padding
};

/// What the operators of a padded graph do along padded dimensions, and which cases no mask can correct. `real`,
/// `padded` and `positions` (of both) must outlive the object.
class PaddedReads {
 public:
  PaddedReads(const OperatorGraph& real, const OperatorGraph& padded, const PaddedPositions& positions)
      : real_(real), padded_(padded), positions_(positions) {}

  bool is_padded(OperatorId op, std::size_t factor) const { return has_padding(positions_.factors[op][factor]); }

  /// The dimensions of an operand that walk a factor.
  std::set<std::size_t> walked(OperatorId op, std::size_t operand, std::size_t factor) const;

  /// The padded dimensions of an operand whose positions the operator combines.
  std::set<std::size_t> combined(OperatorId op, std::size_t operand) const;

  /// The neutral value for the dimensions that `combined` returns; null if this type of operator has none.
  const Neutral* neutral(OperatorId op, std::size_t operand) const;

  /// Whether a factor counts the rows or classes that indices select from; they never select padding.
  bool chooses(OperatorId op, std::size_t factor) const;

  /// Whether Softmax over the keys, or FlashAttention, has a causal mask of equally padded queries and keys, so that
  /// queries that exist see no padded key.
  bool has_causal_scores(OperatorId softmax) const;
  bool is_causal(OperatorId attention) const;

  /// Adds a fault for each padded dimension that the operator reads or makes in a way that no mask makes exact.
  void check(OperatorId op, std::vector<Diagnostic>& faults) const;

  /// "pool (MaxPool) slides a window over dimension 2 of x, 12 (9 + 3 padding); no mask makes that exact".
  Diagnostic refusal(OperatorId op, TensorId tensor, std::size_t dimension, std::string_view what) const;
  /// The same for the first dimension that walks the factor.
  Diagnostic refusal(OperatorId op, std::size_t factor, std::string_view what) const;

 private:
  std::string_view type_of(OperatorId op) const { return padded_.operation(op).type->name; }

  const OperatorGraph& real_;
  const OperatorGraph& padded_;
  const PaddedPositions& positions_;
};

/// Whether the first result of an operator of this type is 0 wherever its first operand is.
bool is_zero_at_zero(std::string_view type);

}  // namespace shardplan
