#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// A list of nothing, one entry per operand.
inline Gradients no_gradients(const GradientRequest& request) { return Gradients(request.operands.size()); }

/// The gradient of the first operand, made of the first result's by `make(dy)`; the other operands get none.
template <class Make>
Gradients gradient_of_first(const GradientRequest& request, Make make) {
  Gradients gradients = no_gradients(request);
  if (request.result_gradients[0] && request.needed[0]) gradients[0] = make(*request.result_gradients[0]);
  return gradients;
}

/// The gradients that one operator has as its results, in the order of the operands, where they are needed.
Gradients needed_gradients(const GradientRequest& request, const std::vector<TensorId>& all);

/// Adds an operator and returns its first result.
TensorId add_one(GradientBuilder& builder, std::string_view type, const std::vector<TensorId>& operands,
                 const Attributes& attributes = {});

/// Undoes a broadcast: adds up `tensor` to `shape`, which broadcasts to the tensor's.
TensorId sum_to(GradientBuilder& builder, TensorId tensor, const Shape& shape);

/// A view of `tensor` in another shape; itself if it has that shape.
TensorId reshape_to(GradientBuilder& builder, TensorId tensor, const Shape& shape);

/// `tensor` repeated to `shape`; itself if it has that shape.
TensorId broadcast_to(GradientBuilder& builder, TensorId tensor, const Shape& shape);

/// The gradient of one result, zeros if there is none.
TensorId gradient_or_zeros(GradientBuilder& builder, const GradientRequest& request, std::size_t result);

}  // namespace shardplan
