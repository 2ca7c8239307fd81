#include "operators/families/rearranging.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostPieces = 1 << 16;

std::size_t axis_of(const Operation& operation) {
  const std::size_t rank = operation.operands[0].shape.size() + (operation.type->name == "Stack" ? 1 : 0);
  return normal_axis(operation, operation.integer("axis"), rank);
}

std::int64_t checked_size(const Operation& operation, std::optional<std::int64_t> size) {
  if (!size) operand_error(operation, "the result has more elements than 64 bits can count");
  return *size;
}

/// First position, step and count in every dimension of a slice of `shape`.
struct SliceBounds {
  Shape begin, step, size;

  bool is_whole(std::size_t d, const Shape& shape) const {
    return begin[d] == 0 && step[d] == 1 && size[d] == shape[d];
  }
};

/// Slice by begin and size (-1: to the end), StridedSlice by begin, end (negative: from the end) and strides.
SliceBounds slice_bounds(const Operation& operation, const Shape& shape) {
  const std::vector<std::int64_t>& begin = operation.list("begin");
  const bool is_strided = operation.attributes.contains("end");
  const std::vector<std::int64_t>& second = operation.list(is_strided ? "end" : "size");
  const std::vector<std::int64_t> steps = is_strided ? operation.list("strides") : std::vector<std::int64_t>{};
  if (begin.size() > shape.size() || second.size() != begin.size() ||
      (!steps.empty() && steps.size() != begin.size())) {
    operand_error(operation,
                  fmt::format("begin {}, {} {} and strides {} do not fit an input {}", to_string(begin),
                              is_strided ? "end" : "size", to_string(second), to_string(steps), to_string(shape)));
  }
  SliceBounds bounds{Shape(shape.size(), 0), Shape(shape.size(), 1), shape};
  for (std::size_t d = 0; d < begin.size(); ++d) {
    const std::int64_t extent = shape[d];
    const std::int64_t step = steps.empty() ? 1 : steps[d];
    std::int64_t first = begin[d];
    std::int64_t end = second[d];
    if (is_strided) {
      if (first < 0) first = first < -extent ? 0 : first + extent;
      if (end < 0) end = end < -extent ? 0 : end + extent;
      end = std::min(end, extent);
    } else {
      end = end == -1 ? extent : end < 0 || first > extent - end ? extent + 1 : first + end;
    }
    if (step < 1 || first < 0 || first >= end || end > extent) {
      operand_error(operation, fmt::format("takes [{}, {}) in steps of {} along dimension {}, which has {}", begin[d],
                                           is_strided ? second[d] : end, step, d, extent));
    }
    bounds.begin[d] = first;
    bounds.step[d] = step;
    bounds.size[d] = (end - first - 1) / step + 1;
  }
  return bounds;
}

/// The full and the sliced shape of Slice, StridedSlice and SliceGrad.
const Shape& full_shape(const Operation& operation) {
  return operation.type->name == "SliceGrad" ? operation.list("shape") : operation.operands[0].shape;
}

bool are_equal_pieces(const std::vector<TensorType>& pieces, std::size_t axis) {
  return std::ranges::all_of(pieces,
                             [&](const TensorType& piece) { return piece.shape[axis] == pieces[0].shape[axis]; });
}

/// The rule of Split (`whole` is the operand) and Concat (`whole` is the result).
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
  std::vector<std::uint32_t> all;
  if (is_split) {
    builder.operand(full);
    all.push_back(0);
  } else {
    builder.result(full);
  }
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    if (is_split) {
      builder.result(piece);
    } else {
      builder.operand(piece);
      builder.monotone({i});
      all.push_back(i);
    }
  }
  builder.linear(all);
  if (all.size() > 1 || is_split) builder.monotone(all);
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

}  // namespace

std::vector<TensorType> infer_transpose(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::vector<std::int64_t>& perm = operation.list("perm");
  const bool is_permutation =
      perm.size() == x.shape.size() && normal_axes(operation, perm, x.shape.size()).size() == x.shape.size();
  if (!is_permutation) {
    operand_error(operation,
                  fmt::format("perm {} does not order the dimensions of {}", to_string(perm), to_string(x.shape)));
  }
  Shape shape;
  for (const std::int64_t from : perm) shape.push_back(x.shape[normal_axis(operation, from, x.shape.size())]);
  return {{std::move(shape), x.dtype}};
}

ShardingRule transpose_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  TensorWalk y;
  for (const std::int64_t from : operation.list("perm")) y.push_back(x[normal_axis(operation, from, x.size())]);
  builder.operand(x);
  builder.result(std::move(y));
  builder.linear({0});
  builder.monotone({0});
  return builder.build();
}

void transpose_kernel(const KernelCall& call) {
  const Shape own = row_major_strides(call.operands[0].shape);
  Shape strides;
  for (const std::int64_t from : call.operation.list("perm")) {
    strides.push_back(own[normal_axis(call.operation, from, own.size())]);
  }
  double* result = call.results[0].data;
  for_each_point<1>(call.results[0].shape, {strides},
                    [&](const std::array<std::int64_t, 1>& at) { *result++ = call.operands[0].data[at[0]]; });
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
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < operation.operands.size(); ++i) {
    builder.operand(operand);
    builder.monotone({i});
    all.push_back(i);
  }
  builder.result(result);
  builder.linear(all);
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

std::vector<TensorType> infer_slice(const Operation& operation) {
  return {{slice_bounds(operation, operation.operands[0].shape).size, operation.operands[0].dtype}};
}

std::vector<TensorType> infer_slice_grad(const Operation& operation) {
  const Shape& full = operation.list("shape");
  if (slice_bounds(operation, full).size != operation.operands[0].shape) {
    operand_error(operation, fmt::format("the input {} is no such slice of {}", to_string(operation.operands[0].shape),
                                         to_string(full)));
  }
  return {{full, operation.operands[0].dtype}};
}

ShardingRule slice_rule(const Operation& operation) {
  const Shape& full = full_shape(operation);
  const SliceBounds bounds = slice_bounds(operation, full);
  Shape taken = full;
  for (std::size_t d = 0; d < full.size(); ++d) {
    if (!bounds.is_whole(d, full)) taken[d] = 1;
  }
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(taken);
  builder.operand(walk);
  builder.result(walk);
  builder.linear({0});
  if (operation.type->name != "SliceGrad") builder.monotone({0});
  return builder.build();
}

namespace {

/// Offsets of the points of a slice in the local full tensor: dimensions that are cut are whole, so their slice is too.
template <class Body>
void for_each_slice_point(const Operation& operation, const Shape& global, const Shape& local_full,
                          const Shape& local_slice, Body body) {
  const SliceBounds bounds = slice_bounds(operation, global);
  Shape strides = row_major_strides(local_full);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    first += bounds.begin[d] * strides[d];
    strides[d] *= bounds.step[d];
  }
  for_each_point<1>(local_slice, {strides}, [&](const std::array<std::int64_t, 1>& at) { body(first + at[0]); });
}

}  // namespace

void slice_kernel(const KernelCall& call) {
  double* result = call.results[0].data;
  for_each_slice_point(call.operation, full_shape(call.operation), call.operands[0].shape, call.results[0].shape,
                       [&](std::int64_t at) { *result++ = call.operands[0].data[at]; });
}

void slice_grad_kernel(const KernelCall& call) {
  const double* dy = call.operands[0].data;
  for_each_slice_point(call.operation, full_shape(call.operation), call.results[0].shape, call.operands[0].shape,
                       [&](std::int64_t at) { call.results[0].data[at] = *dy++; });
}

std::vector<TensorType> infer_tile(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::vector<std::int64_t>& multiples = operation.list("multiples");
  if (multiples.size() < x.shape.size()) {
    operand_error(operation, fmt::format("multiples {} are fewer than the dimensions of {}", to_string(multiples),
                                         to_string(x.shape)));
  }
  Shape shape = multiples;
  const std::size_t skipped = multiples.size() - x.shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 1) operand_error(operation, fmt::format("multiples {} must be at least 1", to_string(multiples)));
    if (d >= skipped) shape[d] = checked_size(operation, checked_multiply(shape[d], x.shape[d - skipped]));
  }
  return {{std::move(shape), x.dtype}};
}

ShardingRule tile_rule(const Operation& operation) {
  const std::vector<std::int64_t>& multiples = operation.list("multiples");
  const Shape& shape = operation.operands[0].shape;
  const std::size_t skipped = multiples.size() - shape.size();
  RuleBuilder builder;
  TensorWalk x;
  TensorWalk y;
  for (std::size_t d = 0; d < multiples.size(); ++d) {
    const DimensionWalk copies = multiples[d] == 1 ? whole() : builder.add("copy" + position_name(d), multiples[d]);
    DimensionWalk own = whole();
    if (d >= skipped) {
      if (shape[d - skipped] > 1) own = builder.add(position_name(d), shape[d - skipped]);
      x.push_back(own);
    }
    y.push_back(product(copies, own));
  }
  builder.operand(std::move(x));
  builder.result(std::move(y));
  builder.linear({0});
  builder.monotone({0});
  return builder.build();
}

void tile_kernel(const KernelCall& call) {
  // Every dimension as (copy, own): the local copies are the result's extent over the operand's.
  Shape extents;
  Shape strides;
  const Shape& result = call.results[0].shape;
  const Shape& x = call.operands[0].shape;
  const Shape own = row_major_strides(x);
  const std::size_t skipped = result.size() - x.size();
  for (std::size_t d = 0; d < result.size(); ++d) {
    const std::int64_t size = d < skipped ? 1 : x[d - skipped];
    extents.push_back(result[d] / size);
    extents.push_back(size);
    strides.push_back(0);
    strides.push_back(d < skipped ? 0 : own[d - skipped]);
  }
  double* y = call.results[0].data;
  for_each_point<1>(extents, {strides},
                    [&](const std::array<std::int64_t, 1>& at) { *y++ = call.operands[0].data[at[0]]; });
}

std::vector<TensorType> infer_broadcast_to(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const Shape& shape = operation.list("shape");
  if (shape.size() < x.shape.size() || broadcast_shapes(operation, x.shape, shape) != shape) {
    operand_error(operation, fmt::format("{} does not broadcast to {}", to_string(x.shape), to_string(shape)));
  }
  return {{shape, x.dtype}};
}

ShardingRule broadcast_to_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk result = builder.add_positions(operation.results[0].shape);
  builder.operand(broadcast_walk(result, operation.results[0].shape, operation.operands[0].shape));
  builder.result(result);
  builder.linear({0});
  builder.monotone({0});
  return builder.build();
}

void broadcast_to_kernel(const KernelCall& call) {
  const Shape& extents = call.results[0].shape;
  double* result = call.results[0].data;
  for_each_point<1>(extents, {broadcast_strides(call.operands[0].shape, extents)},
                    [&](const std::array<std::int64_t, 1>& at) { *result++ = call.operands[0].data[at[0]]; });
}

}  // namespace shardplan
