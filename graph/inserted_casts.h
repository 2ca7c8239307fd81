#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "graph/operator_graph.h"

namespace shardplan {

/// Casts that a pass over a graph puts in front of readers, "<tensor>.<type>": one for all readers that want a tensor in the
/// same type. A cast belongs to the block of its first reader, of which it takes everything but the strategy; it is recomputed
/// where that reader is.
class InsertedCasts {
 public:
  /// `builder` builds the graph with the casts; both are kept by reference.
  InsertedCasts(const OperatorGraph& graph, OperatorGraphBuilder& builder) : graph_(graph), builder_(builder) {}

  /// The user's layout of an operand of `reader`; nothing if it is open.
  std::optional<StrategyEntry> layout_of(OperatorId reader, std::size_t operand) const;

  /// `tensor` in another type, for `reader`. `layout` is that of a cast which is made for it; nothing leaves it open.
  TensorId cast(TensorId tensor, DataType to, OperatorId reader, const std::optional<StrategyEntry>& layout);
  /// Makes the operation of an existing cast anew, whose operand has another type now.
  void retype(OperatorId cast);

 private:
  std::string free_name(const std::string& wanted) const;

  const OperatorGraph& graph_;
  OperatorGraphBuilder& builder_;
  std::map<std::pair<TensorId, DataType>, TensorId> casts_;
};

}  // namespace shardplan
