#include "operators/families/key_value_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "operators/building/attributes.h"
#include "operators/building/indices.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

std::size_t token_axis(const Operation& operation) {
  const std::size_t rank = operation.operands[0].shape.size();
  const std::size_t axis = normal_axis(operation, operation.integer("axis"), rank);
  if (axis == 0) operand_error(operation, "axis 0 is the batch, of which indices holds one position each");
  return axis;
}

std::vector<TensorType> infer_cache_update(const Operation& operation) {
  const TensorType& var = operation.operands[0];
  const TensorType& indices = operation.operands[1];
  const TensorType& updates = operation.operands[2];
  const std::size_t axis = token_axis(operation);
  check_indices(operation, 1);
  if (indices.shape != Shape{var.shape[0]}) {
    operand_error(operation, fmt::format("indices are {}; expected [{}], the first dimension of var",
                                         to_string(indices.shape), var.shape[0]));
  }
  Shape wanted = updates.shape;
  if (wanted.size() == var.shape.size()) wanted[axis] = var.shape[axis];
  if (wanted != var.shape || updates.shape[axis] > var.shape[axis]) {
    operand_error(operation, fmt::format("updates are {}; expected {} with at most {} in dimension {}",
                                         to_string(updates.shape), to_string(var.shape), var.shape[axis], axis));
  }
  const bool is_narrowed = var.dtype == DataType::kF8E4M3 && is_floating(updates.dtype);
  if (updates.dtype != var.dtype && !is_narrowed) {
    operand_error(operation, fmt::format("updates are {} and var is {}; expected the same type, or var of f8e4m3",
                                         to_string(updates.dtype), to_string(var.dtype)));
  }
  return {var};
}

/// A device writes those of the tokens that lie in its box of s.
ShardingRule cache_update_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  const std::size_t axis = token_axis(operation);
  RuleBuilder builder;
  TensorWalk var = builder.add_positions(shape);
  TensorWalk updates = var;
  updates[axis] = builder.add("t", operation.operands[2].shape[axis], FactorKind::kNeedReplication);
  builder.operand(var);
  builder.operand({var[0]});
  builder.operand(std::move(updates));
  builder.result(std::move(var));
  return builder.build();
}

void cache_update_kernel(const KernelCall& call) {
  const std::size_t axis = token_axis(call.operation);
  const OperandView& updates = call.operands[2];
  const AroundAxis from(updates.shape, axis);
  const AroundAxis to(call.results[0].shape, axis);
  const Box box = call.result_box(0, axis);
  const std::int64_t per_batch = from.outer / std::max<std::int64_t>(1, updates.shape[0]);
  std::copy_n(call.operands[0].data, num_elements(call.results[0].shape), call.results[0].data);
  for (std::int64_t o = 0; o < from.outer; ++o) {
    const double first = call.operands[1].data[o / per_batch];
    for (std::int64_t t = 0; t < from.size; ++t) {
      const double position = first + static_cast<double>(t);
      if (!(position >= static_cast<double>(box.begin) && position < static_cast<double>(box.end))) continue;
      const std::int64_t at = static_cast<std::int64_t>(position) - box.begin;
      std::copy_n(updates.data + (o * from.size + t) * from.inner, from.inner,
                  call.results[0].data + (o * to.size + at) * to.inner);
    }
  }
}

/// All tokens fit behind an index that is below.
std::int64_t cache_update_extent(const Operation& operation, std::size_t operand) {
  const std::size_t axis = token_axis(operation);
  return operand == 1 ? operation.operands[0].shape[axis] - operation.operands[2].shape[axis] + 1 : 0;
}

}  // namespace

std::vector<OperatorType> key_value_cache_operators() {
  return {
      {.name = "KVCacheScatterUpdate",
       .signature = "var, indices, updates -> var",
       .attributes = {integer("axis", -2, "the tokens' dimension")},
       .infer = infer_cache_update,
       .rule_text = "b ... s ..., b, b ... t ... -> b ... s ...; t: whole",
       .rule = cache_update_rule,
       .linear = {{"var", "updates"}},
       .monotone = {{"var", "updates"}},
       .kernel = cache_update_kernel,
       .flops_per_point = 0,
       .index_extent = cache_update_extent,
       .moves_elements = true,
       .in_place = InPlace::kOverwritten,
       .notes = "in place  var is a parameter with requires_grad: false, the cache. Of every sequence the tokens of\n"
                "          updates overwrite those from its index on; nothing else is read or written. With the\n"
                "          tokens of var in pieces, each device writes those that it holds\n"},
  };
}

}  // namespace shardplan
