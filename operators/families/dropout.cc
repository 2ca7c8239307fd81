#include "operators/families/dropout.h"

#include <fmt/format.h>

#include "base/random.h"
#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

void check_draws(const Operation& operation, const Shape& shape) {
  const double keep = operation.number("keep_prob");
  if (!(keep > 0 && keep <= 1))
    operand_error(operation, fmt::format("keep_prob is {}; expected above 0, at most 1", keep));
  const std::vector<std::int64_t>& drawn = operation.list("drawn_shape");
  bool fits = drawn.empty() || drawn.size() == shape.size();
  for (std::size_t d = 0; fits && d < drawn.size(); ++d) fits = drawn[d] >= 1 && drawn[d] <= shape[d];
  if (!fits) {
    operand_error(operation, fmt::format("drawn_shape is {}; expected no more positions than {}", to_string(drawn),
                                         to_string(shape)));
  }
}

std::vector<TensorType> infer_dropout(const Operation& operation) {
  check_draws(operation, operation.operands[0].shape);
  return {operation.operands[0], {operation.operands[0].shape, DataType::kBool}};
}

/// Calls body(local offset, is kept) for each element of the first result.
template <class Body>
void for_each_draw(const KernelCall& call, Body body) {
  const double keep = call.operation.number("keep_prob");
  const Shape& local = call.results[0].shape;
  // The offset of each local point in the global tensor: global strides from the first local element on. In a padded
  // tensor draws are counted as without padding.
  const std::vector<std::int64_t>& drawn = call.operation.list("drawn_shape");
  const Shape strides = row_major_strides(drawn.empty() ? call.operation.results[0].shape.items() : drawn);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < local.size(); ++d) first += strides[d] * call.result_box(0, d).begin;
  const std::uint64_t stream = mix(call.seed);
  std::int64_t i = 0;
  for_each_point<1>(local, {strides}, [&](const std::array<std::int64_t, 1>& at) {
    const std::uint64_t draw = mix(stream ^ static_cast<std::uint64_t>(first + at[0]));
    body(i++, static_cast<double>(draw >> 11) * 0x1p-53 < keep);
  });
}

void dropout_kernel(const KernelCall& call) {
  const double keep = call.operation.number("keep_prob");
  for_each_draw(call, [&](std::int64_t i, bool is_kept) {
    call.results[0].data[i] = is_kept ? call.operands[0].data[i] / keep : 0.0;
    call.results[1].data[i] = is_kept ? 1.0 : 0.0;
  });
}

/// Draws of a whole mask without a tensor: as Dropout's, by seed and global index.
std::vector<TensorType> infer_mask(const Operation& operation) {
  check_draws(operation, operation.list("shape"));
  return {{operation.list("shape"), DataType::kBool}};
}

ShardingRule mask_rule(const Operation& operation) {
  RuleBuilder builder;
  builder.result(builder.add_positions(operation.results[0].shape));
  return builder.build();
}

void mask_kernel(const KernelCall& call) {
  for_each_draw(call, [&](std::int64_t i, bool is_kept) { call.results[0].data[i] = is_kept ? 1.0 : 0.0; });
}

std::vector<TensorType> infer_do_mask(const Operation& operation) {
  if (operation.operands[0].shape != operation.operands[1].shape) {
    operand_error(operation, fmt::format("mask is {}; expected {}", to_string(operation.operands[1].shape),
                                         to_string(operation.operands[0].shape)));
  }
  return {operation.operands[0]};
}

Gradients do_mask_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "DropoutDoMask", {dy, request.operands[1]}, request.operation.attributes);
  });
}

void dropout_grad_kernel(const KernelCall& call) {
  const double keep = call.operation.number("keep_prob");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    call.results[0].data[i] = call.operands[1].data[i] != 0 ? call.operands[0].data[i] / keep : 0.0;
  }
}

AttributeSpec drawn_shape() {
  return list("drawn_shape", empty_list(),
              "the shape in which draws are counted; empty: that of x (of a padded one: without)");
}

Gradients dropout_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "DropoutGrad", {dy, request.results[1]},
                   {{"keep_prob", request.operation.number("keep_prob")}});
  });
}

}  // namespace

std::vector<OperatorType> dropout_operators() {
  return {
      {.name = "DropoutGenMask",
       .signature = " -> mask",
       .attributes = {list("shape", std::nullopt, "of the mask"),
                      number("keep_prob", 0.5, "probability that an element is kept"), drawn_shape()},
       .infer = infer_mask,
       .rule_text = " -> ...",
       .rule = mask_rule,
       .kernel = mask_kernel},
      {.name = "DropoutDoMask",
       .signature = "x, mask -> y",
       .attributes = {number("keep_prob", 0.5, "as the mask's: what is kept is divided by it")},
       .infer = infer_do_mask,
       .rule_text = "..., ... -> ...",
       .rule = elementwise_rule,
       .linear = {{"x"}},
       .kernel = dropout_grad_kernel,
       .gradient = do_mask_gradient},
      {.name = "Dropout",
       .signature = "x -> y, mask",
       .attributes = {number("keep_prob", 0.5, "probability that an element is kept"), drawn_shape()},
       .infer = infer_dropout,
       .rule_text = "... -> ..., ...",
       .rule = elementwise_rule,
       .kernel = dropout_kernel,
       .gradient = dropout_gradient,
       .notes = "seed      the mask follows from seed and global position: the same on any mesh"},
      {.name = "DropoutGrad",
       .signature = "dy, mask -> dx",
       .attributes = {number("keep_prob", 0.5, "as the forward operator's")},
       .infer = infer_like_first,
       .rule_text = "..., ... -> ...",
       .rule = elementwise_rule,
       .linear = {{"dy"}},
       .kernel = dropout_grad_kernel,
       .is_internal = true},
  };
}

}  // namespace shardplan
