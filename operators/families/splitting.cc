#include "operators/families/splitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/integer.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

// Split and Concat are one arrangement of pieces in a tensor, read from either side: one rule (`together` is the whole)
// and one loop over the rows of pieces serve both and their gradients.

namespace shardplan {
namespace {

constexpr std::int64_t kMostPieces = 1 << 16;

std::size_t axis_of(const Operation& operation) {
  const std::size_t rank = operation.operands[0].shape.size() + (operation.type->name == "Stack" ? 1 : 0);
  return normal_axis(operation, operation.integer("axis"), rank);
}

bool are_equal_pieces(const std::vector<TensorType>& pieces, std::size_t axis) {
  return std::ranges::all_of(pieces,
                             [&](const TensorType& piece) { return piece.shape[axis] == pieces[0].shape[axis]; });
}

/// The rule of Split (`together` is the operand) and Concat (`together` is the result): a dimension split into equal
/// pieces walks (piece, position): the positions can be sharded, the pieces cannot. With unequal pieces the dimension
/// cannot be sharded.
ShardingRule pieces_rule(const TensorType& together, const std::vector<TensorType>& pieces, std::size_t axis,
                         bool is_split) {
  RuleBuilder builder;
  Shape outside = together.shape;
  outside[axis] = 1;  // named below
  TensorWalk piece = builder.add_positions(outside);
  TensorWalk full = piece;
  if (are_equal_pieces(pieces, axis)) {
    const DimensionWalk position = builder.add(position_name(axis), pieces[0].shape[axis]);
    const DimensionWalk which =
        builder.add("piece", static_cast<std::int64_t>(pieces.size()), FactorKind::kNeedReplication);
    piece[axis] = position;
    full[axis] = product(which, position);
  }
  if (is_split) {
    builder.operand(full);
  } else {
    builder.result(full);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (is_split) {
      builder.result(piece);
    } else {
      builder.operand(piece);
    }
  }
  return builder.build();
}

/// Copies pieces out of, or into, a tensor along one dimension.
template <class Copy>
void for_each_piece_row(const Shape& together, std::size_t axis, const std::vector<Shape>& pieces, Copy copy) {
  const AroundAxis around(together, axis);
  for (std::int64_t o = 0; o < around.outer; ++o) {
    std::int64_t at = o * around.size * around.inner;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::int64_t row = pieces[i][axis] * around.inner;
      copy(i, at, o * row, row);
      at += row;
    }
  }
}

std::vector<TensorType> infer_split(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::size_t axis = axis_of(operation);
  std::vector<std::int64_t> sizes = operation.list("size_splits");
  if (sizes.empty()) {
    const std::int64_t count = operation.integer("output_num");
    if (count < 1 || count > kMostPieces || x.shape[axis] % count != 0) {
      operand_error(operation,
                    fmt::format("cannot cut dimension {} of {} in {} equal pieces", axis, to_string(x.shape), count));
    }
    sizes.assign(static_cast<std::size_t>(count), x.shape[axis] / count);
  }
  std::int64_t left = x.shape[axis];
  std::vector<TensorType> results;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > left) left = -1;
    if (left < 0) break;
    left -= size;
    results.push_back(x);
    results.back().shape[axis] = size;
  }
  if (left != 0) {
    operand_error(operation, fmt::format("size_splits {} do not add up to dimension {} of {}", to_string(sizes), axis,
                                         to_string(x.shape)));
  }
  return results;
}

ShardingRule split_rule(const Operation& operation) {
  return pieces_rule(operation.operands[0], operation.results, axis_of(operation), true);
}

void split_kernel(const KernelCall& call) {
  std::vector<Shape> pieces;
  for (const ResultView& result : call.results) pieces.push_back(result.shape);
  for_each_piece_row(call.operands[0].shape, axis_of(call.operation), pieces,
                     [&](std::size_t i, std::int64_t from, std::int64_t to, std::int64_t count) {
                       std::copy_n(call.operands[0].data + from, count, call.results[i].data + to);
                     });
}

std::vector<TensorType> infer_concat(const Operation& operation) {
  TensorType result = operation.operands[0];
  const std::size_t axis = axis_of(operation);
  for (std::size_t i = 1; i < operation.operands.size(); ++i) {
    TensorType other = operation.operands[i];
    if (other.shape.size() != result.shape.size()) {
      operand_error(operation,
                    fmt::format("inputs {} and {} differ in rank", to_string(result.shape), to_string(other.shape)));
    }
    const std::int64_t size = other.shape[axis];
    other.shape[axis] = result.shape[axis];
    if (other != result) {
      operand_error(operation,
                    fmt::format("inputs {} {} and {} {} differ outside axis {}", to_string(operation.operands[0].dtype),
                                to_string(operation.operands[0].shape), to_string(operation.operands[i].dtype),
                                to_string(operation.operands[i].shape), axis));
    }
    result.shape[axis] = checked_size(operation, checked_add(result.shape[axis], size));
  }
  return {result};
}

ShardingRule concat_rule(const Operation& operation) {
  return pieces_rule(operation.results[0], operation.operands, axis_of(operation), false);
}

void concat_kernel(const KernelCall& call) {
  std::vector<Shape> pieces;
  for (const OperandView& operand : call.operands) pieces.push_back(operand.shape);
  for_each_piece_row(call.results[0].shape, axis_of(call.operation), pieces,
                     [&](std::size_t i, std::int64_t to, std::int64_t from, std::int64_t count) {
                       std::copy_n(call.operands[i].data + from, count, call.results[0].data + to);
                     });
}

std::vector<TensorType> infer_stack(const Operation& operation) {
  TensorType result = operation.operands[0];
  for (const TensorType& other : operation.operands) {
    if (other != result)
      operand_error(operation, fmt::format("inputs {} and {} differ", to_string(result.shape), to_string(other.shape)));
  }
  const auto axis = static_cast<std::ptrdiff_t>(axis_of(operation));
  result.shape.insert(result.shape.begin() + axis, static_cast<std::int64_t>(operation.operands.size()));
  return {result};
}

ShardingRule stack_rule(const Operation& operation) {
  const std::size_t axis = axis_of(operation);
  Shape shape = operation.results[0].shape;
  shape[axis] = 1;  // which input: whole
  RuleBuilder builder;
  const TensorWalk result = builder.add_positions(shape);
  TensorWalk operand = result;
  operand.erase(operand.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::size_t i = 0; i < operation.operands.size(); ++i) builder.operand(operand);
  builder.result(result);
  return builder.build();
}

void stack_kernel(const KernelCall& call) {
  const AroundAxis around(call.results[0].shape, axis_of(call.operation));
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < around.size; ++i) {
      std::copy_n(call.operands[static_cast<std::size_t>(i)].data + o * around.inner, around.inner,
                  call.results[0].data + (o * around.size + i) * around.inner);
    }
  }
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

}  // namespace

std::vector<OperatorType> splitting_operators() {
  return {
      {.name = "Split",
       .signature = "x -> y...",
       .attributes = {integer("axis", 0, "the dimension that is cut"),
                      integer("output_num", 1, "in how many equal pieces"),
                      list("size_splits", empty_list(), "instead: the sizes of the pieces")},
       .infer = infer_split,
       .rule_text = "... (piece k) -> ... k, ... k; piece: whole",
       .rule = split_rule,
       .linear = {{"x"}},
       .monotone = {{"x"}},
       .kernel = split_kernel,
       .gradient = split_gradient,
       .flops_per_point = 0,
       .moves_elements = true},
      {.name = "Concat",
       .signature = "x... -> y",
       .attributes = {integer("axis", 0, "along which they are joined")},
       .infer = infer_concat,
       .rule_text = "... k, ... k -> ... (piece k); piece: whole",
       .rule = concat_rule,
       .linear = {{"x..."}},
       .monotone = {{"x"}, {"x..."}},
       .kernel = concat_kernel,
       .gradient = concat_gradient,
       .flops_per_point = 0,
       .moves_elements = true,
       .notes = "strategy  unequal sizes keep the dimension whole"},
      {.name = "Stack",
       .signature = "x... -> y",
       .attributes = {integer("axis", 0, "the new dimension")},
       .infer = infer_stack,
       .rule_text = "..., ... -> ... whole",
       .rule = stack_rule,
       .linear = {{"x..."}},
       .monotone = {{"x"}},
       .kernel = stack_kernel,
       .gradient = stack_gradient,
       .flops_per_point = 0,
       .moves_elements = true},
  };
}

}  // namespace shardplan
