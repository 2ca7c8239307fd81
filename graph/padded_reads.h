#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"
#include "graph/padded_positions.h"

namespace shardplan {

/// What stands in the padding of an operand of which an operator combines positions, so that it has no influence.
struct Neutral {
  std::string_view type;
  std::size_t operand = 0;
  double value = 0;
  bool masks_gradient = false;  // false: the operator's own gradient is 0 there
};

/// What the operators of a padded graph do along padded dimensions, and which of them nothing can be done about. `real`,
/// `padded` and `positions` (of both) must outlive the object.
class PaddedReads {
 public:
  PaddedReads(const OperatorGraph& real, const OperatorGraph& padded, const PaddedPositions& positions)
      : real_(real), padded_(padded), positions_(positions) {}

  bool is_padded(OperatorId op, std::size_t factor) const { return has_padding(positions_.factors[op][factor]); }

  /// The dimensions of an operand that walk a factor.
  std::set<std::size_t> walked(OperatorId op, std::size_t operand, std::size_t factor) const;

  /// Padded dimensions of an operand of which the operator combines positions.
  std::set<std::size_t> combined(OperatorId op, std::size_t operand) const;

  /// The number for what `combined` says, null if there is none for all operators of this type.
  const Neutral* neutral(OperatorId op, std::size_t operand) const;

  /// Whether a factor counts what indices choose among: none of them lies in the padding.
  bool chooses(OperatorId op, std::size_t factor) const;

  /// Whether Softmax over the keys, or FlashAttention, has a causal mask of equally padded queries and keys: a query that
  /// exists sees no key of the padding then.
  bool has_causal_scores(OperatorId softmax) const;
  bool is_causal(OperatorId attention) const;

  /// Adds a fault for each way in which the operator reads or makes a padded dimension that nothing is known of.
  void check(OperatorId op, std::vector<Diagnostic>& faults) const;

  /// "pool (MaxPool) slides a window over dimension 2 of x, 12 (9 + 3 padding); no mask makes that exact".
  Diagnostic refusal(OperatorId op, TensorId tensor, std::size_t dimension, std::string_view what) const;
  /// The same of the first dimension that walks the factor.
  Diagnostic refusal(OperatorId op, std::size_t factor, std::string_view what) const;

 private:
  std::string_view type_of(OperatorId op) const { return padded_.operation(op).type->name; }

  const OperatorGraph& real_;
  const OperatorGraph& padded_;
  const PaddedPositions& positions_;
};

/// Whether the first result of an operator of this type is 0 along whatever its first operand is.
bool is_zero_at_zero(std::string_view type);

}  // namespace shardplan
