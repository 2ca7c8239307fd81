#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

using Gradients = std::vector<std::optional<TensorId>>;

/// A list of nothing, one entry per operand.
inline Gradients no_gradients(const GradientRequest& request) { return Gradients(request.operands.size()); }

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
