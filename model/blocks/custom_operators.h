#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/operator_graph.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// The operators of a file's `custom_operators:`, each known by its rule only: searched and lowered like any other, but
/// without a kernel they cannot be proven, and without a gradient not trained through.
class CustomOperators {
 public:
  explicit CustomOperators(const std::vector<CustomOperatorSyntax>& syntax) : syntax_(syntax) {}

  /// The type of operator `name` for these operands, kept alive by the graph under construction; null if the file has
  /// no such operator. Throws InputError if the rule does not fit the operands.
  const OperatorType* find(const std::string& name, const std::vector<TensorType>& operands,
                           OperatorGraphBuilder& builder);

  std::vector<std::string> names() const;

 private:
  const std::vector<CustomOperatorSyntax>& syntax_;
  std::vector<std::pair<std::vector<TensorType>, const OperatorType*>> known_;
};

}  // namespace shardplan
