#include "operators/families/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

Shape slice(const Shape& shape, std::size_t from, std::size_t to) {
  return Shape(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.begin() + static_cast<std::ptrdiff_t>(to));
}

Shape join(Shape left, const Shape& middle, const Shape& right) {
  left.insert(left.end(), middle.begin(), middle.end());
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

void check_indices(const Operation& operation, std::size_t operand) {
  if (is_floating(operation.operands[operand].dtype)) {
    operand_error(operation, fmt::format("{} are {}; expected integers", operation.type->operand_names[operand],
                                         to_string(operation.operands[operand].dtype)));
  }
}

/// A table and its rows: [pre.., v, post..] and [pre.., indices.., post..].
struct TableShapes {
  Shape pre, indices, post;
  std::int64_t v = 0;
};

ShardingRule table_rule(const TableShapes& shapes, bool is_gather) {
  RuleBuilder builder;
  const FactorKind of_indices = is_gather ? FactorKind::kPassThrough : FactorKind::kReduction;
  const FactorKind of_table = is_gather ? FactorKind::kReduction : FactorKind::kPassThrough;
  const TensorWalk pre = builder.add_named("p", shapes.pre);
  const DimensionWalk v = builder.add("v", shapes.v, of_table);
  const TensorWalk indices = builder.add_named("b", shapes.indices, of_indices);
  const TensorWalk post = builder.add_named("h", shapes.post);
  const TensorWalk table = concatenate(concatenate(pre, {v}), post);
  const TensorWalk rows = concatenate(concatenate(pre, indices), post);
  builder.operand(is_gather ? table : rows);
  builder.operand(indices);
  builder.result(is_gather ? rows : table);
  builder.linear({0});
  return builder.build();
}

TableShapes gather_shapes(const Operation& operation) {
  const Shape& table = operation.operands[0].shape;
  const std::size_t axis = normal_axis(operation, operation.integer("axis"), table.size());
  return {slice(table, 0, axis), operation.operands[1].shape, slice(table, axis + 1, table.size()), table[axis]};
}

/// GatherGrad has the attributes axis and size, UnsortedSegmentSum num_segments.
TableShapes scatter_shapes(const Operation& operation) {
  const Shape& rows = operation.operands[0].shape;
  const Shape& indices = operation.operands[1].shape;
  const bool is_segment_sum = operation.type->name == "UnsortedSegmentSum";
  const std::int64_t size = operation.integer(is_segment_sum ? "num_segments" : "size");
  const auto axis = static_cast<std::size_t>(is_segment_sum ? 0 : operation.integer("axis"));
  if (rows.size() < axis + indices.size() || slice(rows, axis, axis + indices.size()) != indices) {
    operand_error(operation, fmt::format("{} does not begin with {}, the shape of {}", to_string(rows),
                                         to_string(indices), operation.type->operand_names[1]));
  }
  return {slice(rows, 0, axis), indices, slice(rows, axis + indices.size(), rows.size()), size};
}

/// Calls `body(offset in the table, offset in the rows)` for each row that the box of the table holds.
template <class Body>
void for_each_row(const Shape& rows, std::size_t pre_rank, const OperandView& indices, const Box& table, Body body) {
  const std::int64_t before = num_elements(slice(rows, 0, pre_rank));
  const std::int64_t count = num_elements(indices.shape);
  const std::int64_t width = num_elements(rows) / std::max<std::int64_t>(1, before * count);
  for (std::int64_t p = 0; p < before; ++p) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double index = indices.data[i];
      if (!(index >= static_cast<double>(table.begin) && index < static_cast<double>(table.end))) continue;
      const std::int64_t row = static_cast<std::int64_t>(index) - table.begin;
      body((p * table.size() + row) * width, (p * count + i) * width, width);
    }
  }
}

}  // namespace

std::vector<TensorType> infer_gather(const Operation& operation) {
  check_indices(operation, 1);
  const TableShapes shapes = gather_shapes(operation);
  return {{join(shapes.pre, shapes.indices, shapes.post), operation.operands[0].dtype}};
}

ShardingRule gather_rule(const Operation& operation) { return table_rule(gather_shapes(operation), true); }

void gather_kernel(const KernelCall& call) {
  for_each_row(call.results[0].shape, gather_shapes(call.operation).pre.size(), call.operands[1], call.box("v"),
               [&](std::int64_t table, std::int64_t row, std::int64_t width) {
                 std::copy_n(call.operands[0].data + table, width, call.results[0].data + row);
               });
}

Gradients gather_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const Shape& table = request.operation.operands[0].shape;
  const std::size_t axis = normal_axis(request.operation, request.operation.integer("axis"), table.size());
  gradients[0] = add_one(builder, "GatherGrad", {*request.result_gradients[0], request.operands[1]},
                         {{"axis", static_cast<std::int64_t>(axis)}, {"size", table[axis]}});
  return gradients;
}

std::vector<TensorType> infer_scatter_add(const Operation& operation) {
  check_indices(operation, 1);
  const TableShapes shapes = scatter_shapes(operation);
  return {{join(shapes.pre, {shapes.v}, shapes.post), operation.operands[0].dtype}};
}

ShardingRule scatter_add_rule(const Operation& operation) { return table_rule(scatter_shapes(operation), false); }

void scatter_add_kernel(const KernelCall& call) {
  for_each_row(call.operands[0].shape, scatter_shapes(call.operation).pre.size(), call.operands[1], call.box("v"),
               [&](std::int64_t table, std::int64_t row, std::int64_t width) {
                 for (std::int64_t i = 0; i < width; ++i)
                   call.results[0].data[table + i] += call.operands[0].data[row + i];
               });
}

Gradients segment_sum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  gradients[0] = add_one(builder, "Gather", {*request.result_gradients[0], request.operands[1]});
  return gradients;
}

std::vector<TensorType> infer_one_hot(const Operation& operation) {
  check_indices(operation, 0);
  const std::optional<DataType> type = parse_data_type(operation.text("dtype"));
  if (!type) operand_error(operation, fmt::format("unknown dtype '{}'", operation.text("dtype")));
  Shape shape = operation.operands[0].shape;
  const std::size_t axis = normal_axis(operation, operation.integer("axis"), shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), operation.integer("depth"));
  return {{std::move(shape), *type}};
}

ShardingRule one_hot_rule(const Operation& operation) {
  const Shape& indices = operation.operands[0].shape;
  const std::size_t axis = normal_axis(operation, operation.integer("axis"), indices.size() + 1);
  RuleBuilder builder;
  const TensorWalk walk = builder.add_named("b", indices);
  TensorWalk result = walk;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), builder.add("depth", operation.integer("depth")));
  builder.operand(walk);
  builder.result(std::move(result));
  return builder.build();
}

void one_hot_kernel(const KernelCall& call) {
  const Shape& shape = call.results[0].shape;
  const AroundAxis around(shape, normal_axis(call.operation, call.operation.integer("axis"), shape.size()));
  const Box depth = call.box("depth");
  const double on = call.operation.number("on_value");
  const double off = call.operation.number("off_value");
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t c = 0; c < around.size; ++c) {
      for (std::int64_t i = 0; i < around.inner; ++i) {
        const double index = call.operands[0].data[o * around.inner + i];
        call.results[0].data[(o * around.size + c) * around.inner + i] =
            index == static_cast<double>(depth.begin + c) ? on : off;
      }
    }
  }
}

std::vector<TensorType> infer_range(const Operation& operation) {
  const double start = operation.number("start");
  const double limit = operation.number("limit");
  const double delta = operation.number("delta");
  const double count = std::ceil((limit - start) / delta);
  const std::optional<DataType> type = parse_data_type(operation.text("dtype"));
  if (!type) operand_error(operation, fmt::format("unknown dtype '{}'", operation.text("dtype")));
  if (!(count >= 1 && count <= 1e15)) {
    operand_error(operation, fmt::format("no range from {} to {} in steps of {}", start, limit, delta));
  }
  return {{{static_cast<std::int64_t>(count)}, *type}};
}

ShardingRule range_rule(const Operation& operation) {
  RuleBuilder builder;
  builder.result(builder.add_positions(operation.results[0].shape));
  return builder.build();
}

void range_kernel(const KernelCall& call) {
  const double start = call.operation.number("start");
  const double delta = call.operation.number("delta");
  const std::int64_t first = call.result_box(0, 0).begin;
  for (std::int64_t i = 0; i < call.results[0].shape[0]; ++i) {
    call.results[0].data[i] = start + delta * static_cast<double>(first + i);
  }
}

std::vector<TensorType> infer_rotary(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  if (x.empty() || x.back() % 2 != 0) {
    operand_error(operation, fmt::format("the last dimension of {} must be even", to_string(x)));
  }
  for (std::size_t i = 1; i < 3; ++i) {
    const Shape& table = operation.operands[i].shape;
    if (table.empty() || table.back() != x.back() || table.size() > x.size() ||
        broadcast_shapes(operation, x, table) != x) {
      operand_error(operation, fmt::format("{} is {}; expected the last dimensions of {}",
                                           operation.type->operand_names[i], to_string(table), to_string(x)));
    }
  }
  return {operation.operands[0]};
}

ShardingRule rotary_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  Shape outside = shape;
  outside.back() = 1;  // named below
  RuleBuilder builder;
  TensorWalk x = builder.add_positions(outside);
  const DimensionWalk half = builder.add("half", 2, FactorKind::kNeedReplication);
  x.back() = product(half, builder.add(position_name(shape.size() - 1), shape.back() / 2));
  for (const TensorType& operand : operation.operands) builder.operand(broadcast_walk(x, shape, operand.shape));
  builder.result(x);
  builder.linear({0});
  builder.linear({1, 2});
  return builder.build();
}

namespace {

/// Forward: (x1 c1 - x2 s1, x2 c2 + x1 s2). Its transpose: (u1 c1 + u2 s2, u2 c2 - u1 s1).
void rotate(const KernelCall& call, bool is_transposed) {
  Shape extents = call.operands[0].shape;
  const std::int64_t half = extents.back() / 2;
  std::array<Shape, 3> strides;
  for (std::size_t i = 0; i < 3; ++i) strides[i] = broadcast_strides(call.operands[i].shape, extents);
  extents.back() = half;
  double* result = call.results[0].data;
  for_each_point<3>(extents, strides, [&](const std::array<std::int64_t, 3>& at) {
    const double* x = call.operands[0].data + at[0];
    const double* c = call.operands[1].data + at[1];
    const double* s = call.operands[2].data + at[2];
    result[at[0]] = x[0] * c[0] + (is_transposed ? x[half] * s[half] : -x[half] * s[0]);
    result[at[0] + half] = x[half] * c[half] + (is_transposed ? -x[0] * s[0] : x[0] * s[half]);
  });
}

}  // namespace

void rotary_kernel(const KernelCall& call) { rotate(call, false); }
void rotary_grad_kernel(const KernelCall& call) { rotate(call, true); }

Gradients rotary_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  if (request.needed[0]) {
    gradients[0] = add_one(builder, "RotaryEmbeddingGrad", {dy, request.operands[1], request.operands[2]});
  }
  const auto& operands = request.operation.operands;
  if (request.needed[1]) {
    gradients[1] = sum_to(builder, add_one(builder, "Mul", {dy, request.operands[0]}), operands[1].shape);
  }
  if (request.needed[2]) {
    // With cos = 0 and sin = 1 the operator is the rotation alone.
    const TensorId zeros = broadcast_to(builder, builder.constant(0), operands[1].shape);
    const TensorId ones = broadcast_to(builder, builder.constant(1), operands[2].shape);
    const TensorId rotated = add_one(builder, "RotaryEmbedding", {request.operands[0], zeros, ones});
    gradients[2] = sum_to(builder, add_one(builder, "Mul", {dy, rotated}), operands[2].shape);
  }
  return gradients;
}

}  // namespace shardplan
