#include "operators/families/elementwise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "base/random.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

Shape broadcast_all(const Operation& operation) {
  Shape shape;
  for (const TensorType& operand : operation.operands) shape = broadcast_shapes(operation, shape, operand.shape);
  return shape;
}

/// The dtype of operands from `first` on; scalars give way, unless a floating scalar meets integers.
DataType common_type(const Operation& operation, std::size_t first) {
  const TensorType* chosen = &operation.operands[first];
  for (std::size_t i = first + 1; i < operation.operands.size(); ++i) {
    const TensorType& other = operation.operands[i];
    if (other.dtype == chosen->dtype) continue;
    const bool is_scalar = other.shape.empty();
    if (!is_scalar && !chosen->shape.empty()) {
      operand_error(operation, fmt::format("inputs are {} and {}; Cast one of them", to_string(chosen->dtype),
                                           to_string(other.dtype)));
    }
    const TensorType& scalar = is_scalar ? other : *chosen;
    const TensorType& tensor = is_scalar ? *chosen : other;
    chosen = is_floating(scalar.dtype) && !is_floating(tensor.dtype) ? &scalar : &tensor;
  }
  return chosen->dtype;
}

std::size_t channel_dimension(const Operation& operation) {
  const std::size_t rank = operation.operands[0].shape.size();
  const std::string& format = operation.text("data_format");
  if (format != "NCHW" && format != "NHWC") {
    operand_error(operation, fmt::format("data_format is {}; expected NCHW (dimension 1) or NHWC (the last)", format));
  }
  if (rank < 2) operand_error(operation, "needs an input of at least 2 dimensions");
  return format == "NCHW" ? 1 : rank - 1;
}

constexpr double kTanhScale = 0.7978845608028654;  // sqrt(2 / pi)

}  // namespace

std::vector<TensorType> infer_unary(const Operation& operation) { return {operation.operands[0]}; }

std::vector<TensorType> infer_broadcast(const Operation& operation) {
  return {{broadcast_all(operation), common_type(operation, 0)}};
}

std::vector<TensorType> infer_comparison(const Operation& operation) {
  (void)common_type(operation, 0);
  return {{broadcast_all(operation), DataType::kBool}};
}

std::vector<TensorType> infer_logical(const Operation& operation) {
  for (const TensorType& operand : operation.operands) {
    if (operand.dtype != DataType::kBool) {
      operand_error(operation, fmt::format("needs bool inputs, found {}", to_string(operand.dtype)));
    }
  }
  return {{broadcast_all(operation), DataType::kBool}};
}

std::vector<TensorType> infer_select(const Operation& operation) {
  if (operation.operands[0].dtype != DataType::kBool) {
    operand_error(operation, fmt::format("condition is {}; expected bool", to_string(operation.operands[0].dtype)));
  }
  return {{broadcast_all(operation), common_type(operation, 1)}};
}

std::vector<TensorType> infer_add_n(const Operation& operation) {
  for (const TensorType& operand : operation.operands) {
    if (operand != operation.operands[0]) {
      operand_error(
          operation,
          fmt::format("inputs are {} {} and {} {}; expected all alike", to_string(operation.operands[0].dtype),
                      to_string(operation.operands[0].shape), to_string(operand.dtype), to_string(operand.shape)));
    }
  }
  return {operation.operands[0]};
}

std::vector<TensorType> infer_cast(const Operation& operation) {
  const std::optional<DataType> type = parse_data_type(operation.text("dtype"));
  if (!type) {
    operand_error(operation, fmt::format("unknown dtype '{}'; expected f64, f32, f16, bf16, i64, i32, i8, u8 or bool",
                                         operation.text("dtype")));
  }
  return {{operation.operands[0].shape, *type}};
}

std::vector<TensorType> infer_bias_add(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  const Shape& bias = operation.operands[1].shape;
  const std::size_t channel = channel_dimension(operation);
  if (bias.size() != 1 || bias[0] != x[channel]) {
    operand_error(operation,
                  fmt::format("bias is {}, but dimension {} of the input {} has {} (data_format {})", to_string(bias),
                              channel, to_string(x), x[channel], operation.text("data_format")));
  }
  return {{x, common_type(operation, 0)}};
}

std::vector<TensorType> infer_dropout(const Operation& operation) {
  const double keep = operation.number("keep_prob");
  if (!(keep > 0 && keep <= 1))
    operand_error(operation, fmt::format("keep_prob is {}; expected above 0, at most 1", keep));
  return {operation.operands[0], {operation.operands[0].shape, DataType::kBool}};
}

ShardingRule elementwise_rule(const Operation& operation, Passes passes) {
  const Shape full = broadcast_all(operation);
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(full);
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < operation.operands.size(); ++i) {
    builder.operand(broadcast_walk(walk, full, operation.operands[i].shape));
    all.push_back(i);
  }
  for (std::size_t i = 0; i < operation.results.size(); ++i) builder.result(walk);
  const bool jointly = passes == Passes::kJointlyAndEachMonotone || passes == Passes::kJointlyAndFirstMonotone ||
                       passes == Passes::kLinearUnary;
  if (jointly) builder.linear(all);
  if (passes == Passes::kFirst) builder.linear({0});
  for (const std::uint32_t i : all) {
    if (passes == Passes::kEach) builder.linear({i});
    if (passes == Passes::kEachMonotone || passes == Passes::kJointlyAndEachMonotone) builder.monotone({i});
  }
  if (passes == Passes::kFirstMonotone || passes == Passes::kJointlyAndFirstMonotone ||
      passes == Passes::kLinearUnary) {
    builder.monotone({0});
  }
  return builder.build();
}

std::string partial_text(Passes passes, const std::vector<std::string>& operands) {
  const std::string each = fmt::format("{}", fmt::join(operands, " and in "));
  const std::string together =
      fmt::format("{}{}", fmt::join(operands, " and "), operands.size() > 1 ? " together" : "");
  switch (passes) {
    case Passes::kNothing:
      return "";
    case Passes::kFirst:
      return fmt::format("linear in {}", operands[0]);
    case Passes::kEach:
      return fmt::format("linear in {}: a partial sum passes through {}", each, operands.size() > 2 ? "any" : "either");
    case Passes::kFirstMonotone:
      return fmt::format("monotone in {}", operands[0]);
    case Passes::kEachMonotone:
      return fmt::format("monotone in {}", each);
    case Passes::kJointlyAndEachMonotone:
      return fmt::format("linear in {}, monotone in {}", together, each);
    case Passes::kJointlyAndFirstMonotone:
      return fmt::format("linear in {}, monotone in {}", together, operands[0]);
    case Passes::kLinearUnary:
      return fmt::format("linear and monotone in {}", operands[0]);
  }
  return "";
}

ShardingRule select_rule(const Operation& operation) {
  ShardingRule rule = elementwise_rule(operation, Passes::kNothing);
  rule.linear = {{1, 2}};
  rule.monotone = {{1, 2}, {1}, {2}};
  return rule;
}

ShardingRule cast_rule(const Operation& operation) {
  const bool keeps_sums = is_floating(operation.operands[0].dtype) && is_floating(operation.results[0].dtype);
  return elementwise_rule(operation, keeps_sums ? Passes::kLinearUnary : Passes::kFirstMonotone);
}

ShardingRule bias_add_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  builder.operand(x);
  builder.operand({x[channel_dimension(operation)]});
  builder.result(x);
  builder.linear({0, 1});
  builder.monotone({0});
  builder.monotone({1});
  return builder.build();
}

void select_kernel(const KernelCall& call) {
  const Shape& extents = call.results[0].shape;
  double* result = call.results[0].data;
  for_each_point<3>(
      extents,
      {broadcast_strides(call.operands[0].shape, extents), broadcast_strides(call.operands[1].shape, extents),
       broadcast_strides(call.operands[2].shape, extents)},
      [&](const std::array<std::int64_t, 3>& at) {
        *result++ = call.operands[0].data[at[0]] != 0 ? call.operands[1].data[at[1]] : call.operands[2].data[at[2]];
      });
}

void add_n_kernel(const KernelCall& call) {
  const std::int64_t size = num_elements(call.results[0].shape);
  for (const OperandView& operand : call.operands) {
    for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] += operand.data[i];
  }
}

void cast_kernel(const KernelCall& call) {
  const DataType to = call.operation.results[0].dtype;
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double value = call.operands[0].data[i];
    call.results[0].data[i] = is_floating(to)         ? value
                              : to == DataType::kBool ? (value != 0 ? 1 : 0)
                                                      : std::trunc(value);
  }
}

void accumulate_kernel(const KernelCall& call) {
  const auto count = static_cast<double>(call.operation.integer("count"));
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] = call.operands[0].data[i] / count;
}

void bias_add_kernel(const KernelCall& call) {
  const AroundAxis around(call.operands[0].shape, channel_dimension(call.operation));
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t c = 0; c < around.size; ++c) {
      for (std::int64_t i = 0; i < around.inner; ++i, ++at) {
        call.results[0].data[at] = call.operands[0].data[at] + call.operands[1].data[c];
      }
    }
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void gelu_kernel(const KernelCall& call) {
  const bool by_tanh = call.operation.flag("approximate");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = call.operands[0].data[i];
    call.results[0].data[i] = by_tanh ? 0.5 * x * (1 + std::tanh(kTanhScale * (x + 0.044715 * x * x * x)))
                                      : 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  }
}

void gelu_grad_kernel(const KernelCall& call) {
  const bool by_tanh = call.operation.flag("approximate");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double dy = call.operands[0].data[i];
    const double x = call.operands[1].data[i];
    double slope = 0;
    if (by_tanh) {
      const double t = std::tanh(kTanhScale * (x + 0.044715 * x * x * x));
      slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * 0.044715 * x * x);
    } else {
      slope =
          0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    }
    call.results[0].data[i] = dy * slope;
  }
}

void dropout_kernel(const KernelCall& call) {
  const double keep = call.operation.number("keep_prob");
  const Shape& local = call.results[0].shape;
  // The offset of each local point in the global tensor: global strides from the first local element on.
  const Shape strides = row_major_strides(call.operation.results[0].shape);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < local.size(); ++d) first += strides[d] * call.result_box(0, d).begin;
  const std::uint64_t stream = mix(call.seed);
  std::int64_t i = 0;
  for_each_point<1>(local, {strides}, [&](const std::array<std::int64_t, 1>& at) {
    const std::uint64_t draw = mix(stream ^ static_cast<std::uint64_t>(first + at[0]));
    const bool is_kept = static_cast<double>(draw >> 11) * 0x1p-53 < keep;
    call.results[0].data[i] = is_kept ? call.operands[0].data[i] / keep : 0.0;
    call.results[1].data[i] = is_kept ? 1.0 : 0.0;
    ++i;
  });
}

void dropout_grad_kernel(const KernelCall& call) {
  const double keep = call.operation.number("keep_prob");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    call.results[0].data[i] = call.operands[1].data[i] != 0 ? call.operands[0].data[i] / keep : 0.0;
  }
}

}  // namespace shardplan
