#include "operators/families/sparse_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

/// Operands: the table, its states of the same shape, perhaps the count of steps, indices, rows.
std::size_t num_stored(const Operation& operation) { return operation.operands.size() - 2; }
bool is_step_count(const Operation& operation, std::size_t operand) {
  return operation.type->signature.operands[operand] == "step";
}

std::vector<TensorType> infer_sparse_update(const Operation& operation) {
  const std::vector<std::string>& names = operation.type->signature.operands;
  const std::size_t stored = num_stored(operation);
  const Shape& table = operation.operands[0].shape;
  const TensorType& indices = operation.operands[stored];
  const auto expect = [&](std::size_t operand, const Shape& wanted) {
    if (operation.operands[operand].shape == wanted) return;
    operand_error(operation, fmt::format("{} is {}; expected {}", names[operand],
                                         to_string(operation.operands[operand].shape), to_string(wanted)));
  };
  if (table.empty()) operand_error(operation, "param is a scalar; expected rows");
  for (std::size_t i = 1; i < stored; ++i) expect(i, is_step_count(operation, i) ? Shape() : table);
  if (is_floating(indices.dtype)) {
    operand_error(operation, fmt::format("indices are {}; expected integers", to_string(indices.dtype)));
  }
  Shape rows = indices.shape;
  rows.insert(rows.end(), table.begin() + 1, table.end());
  expect(stored + 1, rows);
  return {operation.operands.begin(), operation.operands.begin() + static_cast<std::ptrdiff_t>(stored)};
}

/// The indices are whole: whoever holds a row must see all that is added to it.
ShardingRule sparse_update_rule(const Operation& operation) {
  const Shape& table = operation.operands[0].shape;
  const std::size_t stored = num_stored(operation);
  RuleBuilder builder;
  TensorWalk walk = {builder.add("v", table[0])};
  const TensorWalk indices = builder.add_named("b", operation.operands[stored].shape, FactorKind::kNeedReplication);
  const TensorWalk post = builder.add_named("h", Shape(table.begin() + 1, table.end()));
  walk.insert(walk.end(), post.begin(), post.end());
  for (std::size_t i = 0; i < stored; ++i) {
    const TensorWalk own = is_step_count(operation, i) ? TensorWalk{} : walk;
    builder.operand(own);
    builder.result(own);
  }
  builder.operand(indices);
  TensorWalk rows = indices;
  rows.insert(rows.end(), post.begin(), post.end());
  builder.operand(std::move(rows));
  return builder.build();
}

/// The sums of the rows that this device holds, by their number on it.
std::map<std::int64_t, std::vector<double>> row_sums(const KernelCall& call) {
  const OperandView& indices = call.operands[num_stored(call.operation)];
  const OperandView& rows = call.operands[num_stored(call.operation) + 1];
  const Box box = call.box("v");
  const std::int64_t count = num_elements(indices.shape);
  const std::int64_t width = num_elements(rows.shape) / std::max<std::int64_t>(1, count);
  std::map<std::int64_t, std::vector<double>> sums;
  for (std::int64_t i = 0; i < count; ++i) {
    const double index = indices.data[i];
    if (!(index >= static_cast<double>(box.begin) && index < static_cast<double>(box.end))) continue;
    std::vector<double>& sum = sums[static_cast<std::int64_t>(index) - box.begin];
    sum.resize(static_cast<std::size_t>(width));
    for (std::int64_t j = 0; j < width; ++j) sum[static_cast<std::size_t>(j)] += rows.data[i * width + j];
  }
  return sums;
}

void copy_stored(const KernelCall& call) {
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    std::copy_n(call.operands[i].data, num_elements(call.results[i].shape), call.results[i].data);
  }
}

void sparse_descent_kernel(const KernelCall& call) {
  const double rate = call.operation.number("learning_rate");
  copy_stored(call);
  for (const auto& [row, sum] : row_sums(call)) {
    double* param = call.results[0].data + row * static_cast<std::int64_t>(sum.size());
    for (std::size_t j = 0; j < sum.size(); ++j) param[j] -= rate * sum[j];
  }
}

/// The formulas of ApplyAdam, for the rows that were looked up.
void sparse_adam_kernel(const KernelCall& call) {
  const double rate = call.operation.number("learning_rate");
  const double beta1 = call.operation.number("beta1");
  const double beta2 = call.operation.number("beta2");
  const double eps = call.operation.number("eps");
  const double step = call.operands[3].data[0] + 1;
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  copy_stored(call);
  for (const auto& [row, sum] : row_sums(call)) {
    const std::int64_t at = row * static_cast<std::int64_t>(sum.size());
    for (std::size_t j = 0; j < sum.size(); ++j) {
      const std::int64_t i = at + static_cast<std::int64_t>(j);
      double& m = call.results[1].data[i];
      double& v = call.results[2].data[i];
      m = beta1 * m + (1 - beta1) * sum[j];
      v = beta2 * v + (1 - beta2) * sum[j] * sum[j];
      call.results[0].data[i] -= rate * (m / correction1) / (std::sqrt(v / correction2) + eps);
    }
  }
  call.results[3].data[0] = step;
}

std::int64_t row_extent(const Operation& operation, std::size_t operand) {
  return operand == num_stored(operation) ? operation.operands[0].shape[0] : 0;
}

OperatorType sparse_update(std::string name, const char* signature, std::vector<AttributeSpec> attributes,
                           std::string rule_text, Kernel kernel) {
  attributes.insert(attributes.begin(), number("learning_rate", std::nullopt, "factor of each step"));
  return {.name = std::move(name),
          .signature = signature,
          .attributes = std::move(attributes),
          .infer = infer_sparse_update,
          .rule_text = std::move(rule_text),
          .rule = sparse_update_rule,
          .kernel = kernel,
          .flops_per_point = 0,
          .index_extent = row_extent,
          .in_place = InPlace::kUpdated};
}

}  // namespace

std::vector<OperatorType> sparse_update_operators() {
  OperatorType descent = sparse_update("SparseApplyGradientDescent", "param, indices, rows -> param", {},
                                       "v h, b, b h -> v h; b: whole", sparse_descent_kernel);
  descent.linear = {{"param", "rows"}};
  OperatorType adam = sparse_update(
      "SparseApplyAdam", "param, m, v, step, indices, rows -> param, m, v, step",
      {number("beta1", 0.9, "decay of the first moment"), number("beta2", 0.999, "decay of the second moment"),
       number("eps", 1e-8, "added to the root of the second moment")},
      "v h, v h, v h, , b, b h -> v h, v h, v h, ; b: whole", sparse_adam_kernel);
  return {std::move(descent), std::move(adam)};
}

}  // namespace shardplan
