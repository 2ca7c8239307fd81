#include "operators/families/sparse_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "operators/building/adam.h"
#include "operators/building/attributes.h"
#include "operators/building/indices.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

/// Operands: the table, its states of the same shape, perhaps the count of steps, indices, rows.
std::size_t num_stored(const Operation& operation) { return operation.operands.size() - 2; }
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
  for (std::size_t i = 1; i < stored; ++i) expect(i, is_step(operation, i) ? Shape() : table);
  check_indices(operation, stored);
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
    const TensorWalk own = is_step(operation, i) ? TensorWalk{} : walk;
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
  std::map<std::int64_t, std::vector<double>> sums;
  for_each_row(rows.shape, 0, indices, call.box("v"), [&](std::int64_t table, std::int64_t row, std::int64_t width) {
    std::vector<double>& sum = sums[table / width];
    sum.resize(static_cast<std::size_t>(width));
    for (std::int64_t j = 0; j < width; ++j) sum[static_cast<std::size_t>(j)] += rows.data[row + j];
  });
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

void sparse_adam_kernel(const KernelCall& call) {
  const double step = call.operands[3].data[0] + 1;
  const Adam adam(call.operation, step);
  copy_stored(call);
  for (const auto& [row, sum] : row_sums(call)) {
    const std::int64_t at = row * static_cast<std::int64_t>(sum.size());
    for (std::size_t j = 0; j < sum.size(); ++j) {
      const std::int64_t i = at + static_cast<std::int64_t>(j);
      call.results[0].data[i] -= adam.rate() * adam.change(sum[j], call.results[1].data[i], call.results[2].data[i]);
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
  OperatorType adam =
      sparse_update("SparseApplyAdam", "param, m, v, step, indices, rows -> param, m, v, step", adam_attributes(),
                    "v h, v h, v h, , b, b h -> v h, v h, v h, ; b: whole", sparse_adam_kernel);
  return {std::move(descent), std::move(adam)};
}

}  // namespace shardplan
