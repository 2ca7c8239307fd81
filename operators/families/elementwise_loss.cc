#include "operators/families/elementwise_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_loss(const Operation& operation) {
  const TensorType& prediction = operation.operands[0];
  const std::vector<std::string>& names = operation.type->signature.operands;
  for (std::size_t k = 1; k < operation.operands.size(); ++k) {
    const TensorType& other = operation.operands[k];
    if (other == prediction) continue;
    operand_error(operation,
                  fmt::format("{} is {} {} and {} is {} {}; expected the same", names[0], to_string(prediction.dtype),
                              to_string(prediction.shape), names[k], to_string(other.dtype), to_string(other.shape)));
  }
  if (!is_floating(prediction.dtype)) {
    operand_error(operation, fmt::format("{} is {}; expected a floating type", names[0], to_string(prediction.dtype)));
  }
  if (operation.attributes.contains("beta") && !(operation.number("beta") > 0)) {
    operand_error(operation, fmt::format("beta is {}; expected more than 0", operation.number("beta")));
  }
  return {prediction};
}

double sigmoid_cross_entropy(double x, double y) {
  return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
}

void smooth_l1_kernel(const KernelCall& call) {
  const double beta = call.operation.number("beta");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double distance = std::abs(call.operands[0].data[i] - call.operands[1].data[i]);
    call.results[0].data[i] = distance < beta ? distance * distance / (2 * beta) : distance - beta / 2;
  }
}

/// (prediction, target, dloss) -> dprediction
void sigmoid_cross_entropy_grad_kernel(const KernelCall& call) {
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double probability = 1 / (1 + std::exp(-call.operands[0].data[i]));
    call.results[0].data[i] = call.operands[2].data[i] * (probability - call.operands[1].data[i]);
  }
}

void smooth_l1_grad_kernel(const KernelCall& call) {
  const double beta = call.operation.number("beta");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double difference = call.operands[0].data[i] - call.operands[1].data[i];
    call.results[0].data[i] = call.operands[2].data[i] * std::clamp(difference / beta, -1.0, 1.0);
  }
}

Gradients sigmoid_cross_entropy_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dloss = *request.result_gradients[0];
  const TensorId logits = request.operands[0];
  if (request.needed[0]) {
    gradients[0] = add_one(builder, "SigmoidCrossEntropyWithLogitsGrad", {logits, request.operands[1], dloss});
  }
  if (request.needed[1]) {
    gradients[1] = add_one(builder, "Neg", {add_one(builder, "Mul", {logits, dloss})});
  }
  return gradients;
}

Gradients smooth_l1_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !(request.needed[0] || request.needed[1])) return gradients;
  const TensorId gradient =
      add_one(builder, "SmoothL1LossGrad", {request.operands[0], request.operands[1], *request.result_gradients[0]},
              request.operation.attributes);
  if (request.needed[0]) gradients[0] = gradient;
  if (request.needed[1]) gradients[1] = add_one(builder, "Neg", {gradient});
  return gradients;
}

OperatorType gradient_type(std::string name, const char* signature, Kernel kernel,
                           std::vector<AttributeSpec> attributes) {
  return {.name = std::move(name),
          .signature = signature,
          .attributes = std::move(attributes),
          .infer = infer_loss,
          .rule_text = "..., ..., ... -> ...",
          .rule = elementwise_rule,
          .kernel = kernel,
          .flops_per_point = 4,
          .is_internal = true};
}

}  // namespace

std::vector<OperatorType> elementwise_loss_operators() {
  const std::vector<AttributeSpec> beta = {number("beta", 1, "distance from which the loss is linear")};
  return {
      {.name = "SigmoidCrossEntropyWithLogits",
       .signature = "logits, label -> loss",
       .infer = infer_loss,
       .rule_text = "..., ... -> ...",
       .rule = elementwise_rule,
       .kernel = binary<sigmoid_cross_entropy>,
       .gradient = sigmoid_cross_entropy_gradient,
       .flops_per_point = 6,
       .notes = "result    one loss for each element; labels are probabilities"},
      gradient_type("SigmoidCrossEntropyWithLogitsGrad", "logits, label, dloss -> dlogits",
                    sigmoid_cross_entropy_grad_kernel, {}),
      {.name = "SmoothL1Loss",
       .signature = "prediction, target -> loss",
       .attributes = beta,
       .infer = infer_loss,
       .rule_text = "..., ... -> ...",
       .rule = elementwise_rule,
       .kernel = smooth_l1_kernel,
       .gradient = smooth_l1_gradient,
       .flops_per_point = 4,
       .notes = "result    one loss for each element"},
      gradient_type("SmoothL1LossGrad", "prediction, target, dloss -> dprediction", smooth_l1_grad_kernel, beta),
  };
}

}  // namespace shardplan
