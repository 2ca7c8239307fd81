#include "operators/building/gradient_support.h"

namespace shardplan {

Gradients needed_gradients(const GradientRequest& request, const std::vector<TensorId>& all) {
  Gradients gradients = no_gradients(request);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (request.needed[i]) gradients[i] = all[i];
  }
  return gradients;
}

TensorId add_one(GradientBuilder& builder, std::string_view type, const std::vector<TensorId>& operands,
                 const Attributes& attributes) {
  return builder.add(type, attributes, operands).front();
}

TensorId sum_to(GradientBuilder& builder, TensorId tensor, const Shape& shape) {
  const Shape from = builder.type(tensor).shape;
  const std::size_t skipped = from.size() - shape.size();
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (d < skipped || (shape[d - skipped] == 1 && from[d] != 1)) axes.push_back(static_cast<std::int64_t>(d));
  }
  if (axes.empty()) return tensor;
  return reshape_to(builder, add_one(builder, "ReduceSum", {tensor}, {{"axis", axes}, {"keep_dims", false}}), shape);
}

TensorId reshape_to(GradientBuilder& builder, TensorId tensor, const Shape& shape) {
  if (builder.type(tensor).shape == shape) return tensor;
  return add_one(builder, "Reshape", {tensor}, {{"shape", shape}});
}

TensorId broadcast_to(GradientBuilder& builder, TensorId tensor, const Shape& shape) {
  if (builder.type(tensor).shape == shape) return tensor;
  return add_one(builder, "BroadcastTo", {tensor}, {{"shape", shape}});
}

TensorId gradient_or_zeros(GradientBuilder& builder, const GradientRequest& request, std::size_t result) {
  if (request.result_gradients[result]) return *request.result_gradients[result];
  const TensorType type = builder.type(request.results[result]);
  TensorId zero = builder.constant(0);
  if (builder.type(zero).dtype != type.dtype) {
    zero = add_one(builder, "Cast", {zero}, {{"dtype", std::string(to_string(type.dtype))}});
  }
  return broadcast_to(builder, zero, type.shape);
}

}  // namespace shardplan
