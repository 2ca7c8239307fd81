#include "operators/building/gradient_support.h"
#include "operators/families/elementwise.h"

namespace shardplan {
namespace {

const Shape& shape_of(const GradientRequest& request, std::size_t operand) {
  return request.operation.operands[operand].shape;
}

Gradients gradient_from(GradientBuilder& builder, const GradientRequest& request, TensorId kept) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  gradients[0] = add_one(builder, request.operation.type->name + "Grad", {*request.result_gradients[0], kept},
                         request.operation.attributes);
  return gradients;
}

}  // namespace

Gradients gradient_from_result(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_from(builder, request, request.results[0]);
}

Gradients gradient_from_operand(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_from(builder, request, request.operands[0]);
}

/// Of Add and AddN.
Gradients add_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (request.needed[i]) gradients[i] = sum_to(builder, *request.result_gradients[0], shape_of(request, i));
  }
  return gradients;
}

Gradients sub_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = add_gradient(builder, request);
  if (gradients[1]) gradients[1] = add_one(builder, "Neg", {*gradients[1]});
  return gradients;
}

Gradients mul_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!request.needed[i]) continue;
    const TensorId product = add_one(builder, "Mul", {*request.result_gradients[0], request.operands[1 - i]});
    gradients[i] = sum_to(builder, product, shape_of(request, i));
  }
  return gradients;
}

/// x / y: dy / y and -(dy / y) * (x / y).
Gradients div_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId quotient = add_one(builder, "RealDiv", {*request.result_gradients[0], request.operands[1]});
  if (request.needed[0]) gradients[0] = sum_to(builder, quotient, shape_of(request, 0));
  if (request.needed[1]) {
    const TensorId product = add_one(builder, "Neg", {add_one(builder, "Mul", {quotient, request.results[0]})});
    gradients[1] = sum_to(builder, product, shape_of(request, 1));
  }
  return gradients;
}

/// x^p: dy * p * x^(p-1) and dy * x^p * log(x).
Gradients pow_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const TensorId x = request.operands[0];
  const TensorId exponent = request.operands[1];
  if (request.needed[0]) {
    const TensorId lower = add_one(builder, "Pow", {x, add_one(builder, "Sub", {exponent, builder.constant(1)})});
    const TensorId slope = add_one(builder, "Mul", {lower, exponent});
    gradients[0] = sum_to(builder, add_one(builder, "Mul", {dy, slope}), shape_of(request, 0));
  }
  if (request.needed[1]) {
    const TensorId slope = add_one(builder, "Mul", {request.results[0], add_one(builder, "Log", {x})});
    gradients[1] = sum_to(builder, add_one(builder, "Mul", {dy, slope}), shape_of(request, 1));
  }
  return gradients;
}

/// Of Maximum and Minimum: all of it to the operand that was taken, the first at a tie.
Gradients maximum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const bool is_maximum = request.operation.type->name == "Maximum";
  const TensorId takes_first =
      add_one(builder, is_maximum ? "GreaterEqual" : "LessEqual", {request.operands[0], request.operands[1]});
  for (std::size_t i = 0; i < 2; ++i) {
    if (!request.needed[i]) continue;
    const TensorId zero = builder.constant(0);
    const TensorId taken = i == 0 ? add_one(builder, "Select", {takes_first, dy, zero})
                                  : add_one(builder, "Select", {takes_first, zero, dy});
    gradients[i] = sum_to(builder, taken, shape_of(request, i));
  }
  return gradients;
}

Gradients select_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  for (std::size_t i = 1; i < 3; ++i) {
    if (!request.needed[i]) continue;
    const TensorId zero = builder.constant(0);
    const TensorId taken = i == 1 ? add_one(builder, "Select", {request.operands[0], dy, zero})
                                  : add_one(builder, "Select", {request.operands[0], zero, dy});
    gradients[i] = sum_to(builder, taken, shape_of(request, i));
  }
  return gradients;
}

Gradients neg_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (request.result_gradients[0] && request.needed[0])
    gradients[0] = add_one(builder, "Neg", {*request.result_gradients[0]});
  return gradients;
}

Gradients identity_gradient(GradientBuilder&, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (request.needed[0]) gradients[0] = request.result_gradients[0];
  return gradients;
}

Gradients cast_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  const DataType from = request.operation.operands[0].dtype;
  if (!request.result_gradients[0] || !request.needed[0] || !is_floating(from)) return gradients;
  gradients[0] = add_one(builder, "Cast", {*request.result_gradients[0]}, {{"dtype", std::string(to_string(from))}});
  return gradients;
}

Gradients bias_add_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  if (request.needed[0]) gradients[0] = *request.result_gradients[0];
  if (request.needed[1]) {
    const std::size_t rank = shape_of(request, 0).size();
    const std::size_t channel = request.operation.text("data_format") == "NCHW" ? 1 : rank - 1;
    std::vector<std::int64_t> axes;
    for (std::size_t d = 0; d < rank; ++d) {
      if (d != channel) axes.push_back(static_cast<std::int64_t>(d));
    }
    gradients[1] = add_one(builder, "ReduceSum", {*request.result_gradients[0]}, {{"axis", axes}});
  }
  return gradients;
}

Gradients dropout_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  gradients[0] =
      add_one(builder, "DropoutGrad", {*request.result_gradients[0], request.results[1]}, request.operation.attributes);
  return gradients;
}

}  // namespace shardplan
