#include <algorithm>

#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/families/rearranging.h"

namespace shardplan {

Gradients transpose_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const std::vector<std::int64_t>& perm = request.operation.list("perm");
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) {
    inverse[normal_axis(request.operation, perm[d], perm.size())] = static_cast<std::int64_t>(d);
  }
  gradients[0] = add_one(builder, "Transpose", {*request.result_gradients[0]}, {{"perm", inverse}});
  return gradients;
}

Gradients split_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  const bool is_zero = std::ranges::none_of(request.result_gradients, [](const auto& g) { return g.has_value(); });
  if (is_zero || !request.needed[0]) return gradients;
  std::vector<TensorId> pieces;
  for (std::size_t i = 0; i < request.results.size(); ++i) pieces.push_back(gradient_or_zeros(builder, request, i));
  gradients[0] = add_one(builder, "Concat", pieces, {{"axis", request.operation.integer("axis")}});
  return gradients;
}

Gradients concat_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const std::int64_t axis = request.operation.integer("axis");
  std::vector<std::int64_t> sizes;
  for (const TensorType& operand : request.operation.operands) {
    sizes.push_back(operand.shape[normal_axis(request.operation, axis, operand.shape.size())]);
  }
  const bool are_equal = std::ranges::all_of(sizes, [&](std::int64_t size) { return size == sizes[0]; });
  Attributes attributes = {{"axis", axis}, {"output_num", static_cast<std::int64_t>(sizes.size())}};
  if (!are_equal) attributes["size_splits"] = sizes;
  const std::vector<TensorId> pieces = builder.add("Split", attributes, {*request.result_gradients[0]});
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (request.needed[i]) gradients[i] = pieces[i];
  }
  return gradients;
}

Gradients stack_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const std::int64_t count = static_cast<std::int64_t>(request.operands.size());
  const std::vector<TensorId> pieces = builder.add(
      "Split", {{"axis", request.operation.integer("axis")}, {"output_num", count}}, {*request.result_gradients[0]});
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (request.needed[i]) gradients[i] = reshape_to(builder, pieces[i], request.operation.operands[i].shape);
  }
  return gradients;
}

/// Of Slice and StridedSlice.
Gradients slice_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const Operation& operation = request.operation;
  const Shape& shape = operation.operands[0].shape;
  const bool is_strided = operation.type->name == "StridedSlice";
  Attributes attributes = {{"shape", shape}, {"begin", operation.list("begin")}};
  if (is_strided) {
    attributes["end"] = operation.list("end");
    attributes["strides"] = operation.list("strides");
  } else {
    std::vector<std::int64_t> end;
    for (std::size_t d = 0; d < operation.list("begin").size(); ++d) {
      end.push_back(operation.list("begin")[d] + operation.results[0].shape[d]);
    }
    attributes["end"] = end;
  }
  gradients[0] = add_one(builder, "SliceGrad", {*request.result_gradients[0]}, attributes);
  return gradients;
}

/// Every dimension as (copy, own); the copies are added up.
Gradients tile_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const std::vector<std::int64_t>& multiples = request.operation.list("multiples");
  const Shape& shape = request.operation.operands[0].shape;
  const std::size_t skipped = multiples.size() - shape.size();
  Shape parts;
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < multiples.size(); ++d) {
    if (multiples[d] > 1) {
      axes.push_back(static_cast<std::int64_t>(parts.size()));
      parts.push_back(multiples[d]);
    }
    if (d >= skipped) parts.push_back(shape[d - skipped]);
  }
  TensorId sum = reshape_to(builder, *request.result_gradients[0], parts);
  if (!axes.empty()) sum = add_one(builder, "ReduceSum", {sum}, {{"axis", axes}});
  gradients[0] = reshape_to(builder, sum, shape);
  return gradients;
}

Gradients broadcast_to_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (request.result_gradients[0] && request.needed[0]) {
    gradients[0] = sum_to(builder, *request.result_gradients[0], request.operation.operands[0].shape);
  }
  return gradients;
}

}  // namespace shardplan
