#include "operators/families/masking.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

/// One part of a dimension: its factor, and how many of its positions are real.
struct MaskedPart {
  std::size_t dimension = 0;
  std::int64_t padded = 1;
  std::int64_t real = 1;
  std::string factor;
};

/// The parts as the attributes list them, those of a dimension consecutively.
std::vector<MaskedPart> masked_parts(const Operation& operation) {
  const std::vector<std::int64_t>& dimensions = operation.list("dims");
  const std::vector<std::int64_t>& padded = operation.list("padded");
  const std::vector<std::int64_t>& real = operation.list("real");
  const std::size_t rank = operation.operands[0].shape.size();
  if (dimensions.size() != padded.size() || dimensions.size() != real.size()) {
    operand_error(operation, "dims, padded and real are of different lengths");
  }
  std::vector<MaskedPart> parts;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::size_t d = normal_axis(operation, dimensions[i], rank);
    const bool is_alone = std::count(dimensions.begin(), dimensions.end(), dimensions[i]) == 1;
    const std::string suffix = is_alone ? std::string() : fmt::format("_{}", static_cast<char>('a' + i % 26));
    parts.push_back({d, padded[i], real[i], position_name(d) + suffix});
  }
  return parts;
}

std::vector<TensorType> infer_mask_padding(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  const std::vector<MaskedPart> parts = masked_parts(operation);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t size = 1;
    bool is_masked = false;
    for (const MaskedPart& part : parts) {
      if (part.dimension != d) continue;
      is_masked = true;
      if (part.real < 1 || part.real > part.padded) {
        operand_error(operation, fmt::format("{} of {} positions are no padding", part.real, part.padded));
      }
      size *= part.padded;
    }
    if (is_masked && size != shape[d]) {
      operand_error(operation,
                    fmt::format("the parts of dimension {} of {} have {} positions", d, to_string(shape), size));
    }
  }
  return {operation.operands[0]};
}

ShardingRule mask_padding_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  const std::vector<MaskedPart> parts = masked_parts(operation);
  RuleBuilder builder;
  TensorWalk walk;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    DimensionWalk of_dimension;
    bool is_masked = false;
    for (const MaskedPart& part : parts) {
      if (part.dimension != d) continue;
      is_masked = true;
      of_dimension = product(of_dimension, builder.add(part.factor, part.padded));
    }
    if (!is_masked && shape[d] > 1) of_dimension = builder.add(position_name(d), shape[d]);
    walk.push_back(std::move(of_dimension));
  }
  builder.operand(walk);
  builder.result(std::move(walk));
  ShardingRule rule = builder.build();
  if (operation.number("value") == 0) rule.linear = {{0}};
  return rule;
}

/// By local position of a dimension, whether it is real.
std::vector<char> existing(const KernelCall& call, const std::vector<MaskedPart>& parts, std::size_t dimension) {
  std::vector<char> exists = {1};
  for (const MaskedPart& part : parts) {
    if (part.dimension != dimension) continue;
    const Box box = part.padded == 1 ? Box() : call.box(part.factor);
    std::vector<char> inner;
    for (const char outer : exists) {
      for (std::int64_t i = box.begin; i < box.end; ++i) inner.push_back(outer != 0 && i < part.real ? 1 : 0);
    }
    exists = std::move(inner);
  }
  return exists;
}

void mask_padding_kernel(const KernelCall& call) {
  const Shape& shape = call.operands[0].shape;
  double* y = call.results[0].data;
  std::copy_n(call.operands[0].data, num_elements(shape), y);
  const double value = call.operation.number("value");
  const std::vector<MaskedPart> parts = masked_parts(call.operation);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<char> exists = existing(call, parts, d);
    if (std::find(exists.begin(), exists.end(), 0) == exists.end()) continue;
    const AroundAxis around(shape, d);
    for (std::int64_t o = 0; o < around.outer; ++o) {
      for (std::int64_t i = 0; i < around.size; ++i) {
        if (exists[static_cast<std::size_t>(i)] == 0) {
          std::fill_n(y + (o * around.size + i) * around.inner, around.inner, value);
        }
      }
    }
  }
}

/// Values in the padding have no influence, so their gradient is 0.
Gradients mask_padding_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    if (!request.operation.flag("masks_gradient")) return dy;
    Attributes attributes = request.operation.attributes;
    attributes["value"] = 0.0;
    return add_one(builder, "MaskPadding", {dy}, attributes);
  });
}

}  // namespace

std::vector<OperatorType> masking_operators() {
  return {{.name = "MaskPadding",
           .signature = "x -> y",
           .attributes = {list("dims", std::nullopt, "the dimension of each part of the masked dimensions"),
                          list("padded", std::nullopt, "its size"),
                          list("real", std::nullopt, "so many first positions of it are no padding"),
                          number("value", 0, "what stands in the padding"),
                          flag("masks_gradient", true, "false: the gradient in the padding is 0 already")},
           .infer = infer_mask_padding,
           .rule_text = "... -> ...",
           .rule = mask_padding_rule,
           .kernel = mask_padding_kernel,
           .gradient = mask_padding_gradient,
           .is_internal = true}};
}

}  // namespace shardplan
