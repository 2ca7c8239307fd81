#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/index.h"
#include "operators/operation.h"

namespace shardplan {

using TensorId = Index<struct TensorTag>;  // a tensor of one OperatorGraph

/// Where a gradient adds its operators; implemented by graph/differentiate.
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;
  /// Adds one backward operator and returns its results.
  virtual std::vector<TensorId> add(std::string_view type, const Attributes& attributes,
                                    const std::vector<TensorId>& operands) = 0;
  /// A scalar in the type in which the operator that is differentiated computes.
  virtual TensorId constant(double value) = 0;
  virtual TensorType type(TensorId tensor) const = 0;
};

/// What a gradient function is given.
struct GradientRequest {
  const Operation& operation;
  const std::vector<TensorId>& operands;
  const std::vector<TensorId>& results;
  const std::vector<std::optional<TensorId>>& result_gradients;  // nothing: zero
  const std::vector<bool>& needed;                               // by operand
};

/// One gradient per operand, nothing where there is none or none is needed.
using Gradients = std::vector<std::optional<TensorId>>;
using Gradient = Gradients (*)(GradientBuilder&, const GradientRequest&);

}  // namespace shardplan
