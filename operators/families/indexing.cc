#include "operators/families/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/indices.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

// Gather and UnsortedSegmentSum are two views of one table and its rows, and each is the other's gradient: one rule and
// one loop (`for_each_row`) serve both. The same holds for GatherElements and its gradient (`for_each_picked`). Indices
// are read as global positions; a device skips those outside its box of the table, which makes the result a partial
// sum.

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
                                         to_string(indices), operation.type->signature.operands[1]));
  }
  return {slice(rows, 0, axis), indices, slice(rows, axis + indices.size(), rows.size()), size};
}

std::vector<TensorType> infer_gather(const Operation& operation) {
  check_indices(operation, 1);
  const TableShapes shapes = gather_shapes(operation);
  return {{join(shapes.pre, shapes.indices, shapes.post), operation.operands[0].dtype}};
}

std::vector<TensorType> infer_sparse_gather(const Operation& operation) {
  if (operation.integer("axis") != 0) {
    operand_error(operation, fmt::format("axis is {}; expected 0, the rows", operation.integer("axis")));
  }
  return infer_gather(operation);
}

ShardingRule gather_rule(const Operation& operation) { return table_rule(gather_shapes(operation), true); }

void gather_kernel(const KernelCall& call) {
  for_each_row(call.results[0].shape, gather_shapes(call.operation).pre.size(), call.operands[1], call.box("v"),
               [&](std::int64_t table, std::int64_t row, std::int64_t width) {
                 std::copy_n(call.operands[0].data + table, width, call.results[0].data + row);
               });
}

Gradients gather_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    const Shape& table = request.operation.operands[0].shape;
    const std::size_t axis = normal_axis(request.operation, request.operation.integer("axis"), table.size());
    return add_one(builder, "GatherGrad", {dy, request.operands[1]},
                   {{"axis", static_cast<std::int64_t>(axis)}, {"size", table[axis]}});
  });
}

std::vector<TensorType> infer_scatter_rows(const Operation& operation) {
  check_indices(operation, 1);
  const TableShapes shapes = scatter_shapes(operation);
  return {{join(shapes.pre, {shapes.v}, shapes.post), operation.operands[0].dtype}};
}

ShardingRule scatter_rows_rule(const Operation& operation) { return table_rule(scatter_shapes(operation), false); }

void scatter_rows_kernel(const KernelCall& call) {
  for_each_row(call.operands[0].shape, scatter_shapes(call.operation).pre.size(), call.operands[1], call.box("v"),
               [&](std::int64_t table, std::int64_t row, std::int64_t width) {
                 for (std::int64_t i = 0; i < width; ++i)
                   call.results[0].data[table + i] += call.operands[0].data[row + i];
               });
}

Gradients segment_sum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) { return add_one(builder, "Gather", {dy, request.operands[1]}); });
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

// ---- GatherElements: y[.., j, ..] = x[.., indices[.., j, ..], ..]

std::size_t element_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("dim"), operation.operands[1].shape.size());
}

/// x and indices alike but for the axis, along which x has `v` positions.
std::int64_t element_positions(const Operation& operation) {
  return operation.attributes.contains("size") ? operation.integer("size")
                                               : operation.operands[0].shape[element_axis(operation)];
}

void check_elements(const Operation& operation, bool is_gradient) {
  check_indices(operation, 1);
  const Shape& indices = operation.operands[1].shape;
  Shape wanted = operation.operands[0].shape;
  if (wanted.size() == indices.size() && !is_gradient)
    wanted[element_axis(operation)] = indices[element_axis(operation)];
  if (wanted != indices) {
    operand_error(operation, fmt::format("{} {} and indices {} may differ in dimension dim only",
                                         operation.type->signature.operands[0], to_string(operation.operands[0].shape),
                                         to_string(indices)));
  }
}

std::vector<TensorType> infer_gather_elements(const Operation& operation) {
  check_elements(operation, false);
  return {{operation.operands[1].shape, operation.operands[0].dtype}};
}

std::vector<TensorType> infer_gather_elements_grad(const Operation& operation) {
  check_elements(operation, true);
  TensorType dx = operation.operands[0];
  dx.shape[element_axis(operation)] = operation.integer("size");
  return {dx};
}

/// v of the table and j of the indices are factors of their own; all others are common.
ShardingRule elements_rule(const Operation& operation, bool is_gather) {
  const Shape& indices = operation.operands[1].shape;
  const std::size_t axis = element_axis(operation);
  RuleBuilder builder;
  const DimensionWalk v =
      builder.add("v", element_positions(operation), is_gather ? FactorKind::kReduction : FactorKind::kPassThrough);
  const DimensionWalk j =
      builder.add("j", indices[axis], is_gather ? FactorKind::kPassThrough : FactorKind::kReduction);
  Shape outside = indices;
  outside[axis] = 1;
  TensorWalk table = builder.add_named("b", outside);
  TensorWalk picked = table;
  table[axis] = v;
  picked[axis] = j;
  builder.operand(is_gather ? table : picked);
  builder.operand(picked);
  builder.result(is_gather ? picked : table);
  return builder.build();
}
ShardingRule gather_elements_rule(const Operation& operation) { return elements_rule(operation, true); }
ShardingRule gather_elements_grad_rule(const Operation& operation) { return elements_rule(operation, false); }

/// Calls body(offset in the table, offset among the picked ones) for each element in the box of the table.
template <class Body>
void for_each_picked(const KernelCall& call, Body body) {
  const AroundAxis around(call.operands[1].shape, element_axis(call.operation));
  const Box v = call.box("v");
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t j = 0; j < around.size; ++j) {
      for (std::int64_t i = 0; i < around.inner; ++i) {
        const std::int64_t at = (o * around.size + j) * around.inner + i;
        const double index = call.operands[1].data[at];
        if (!(index >= static_cast<double>(v.begin) && index < static_cast<double>(v.end))) continue;
        body((o * v.size() + static_cast<std::int64_t>(index) - v.begin) * around.inner + i, at);
      }
    }
  }
}

void gather_elements_kernel(const KernelCall& call) {
  for_each_picked(
      call, [&](std::int64_t table, std::int64_t at) { call.results[0].data[at] = call.operands[0].data[table]; });
}

void gather_elements_grad_kernel(const KernelCall& call) {
  for_each_picked(
      call, [&](std::int64_t table, std::int64_t at) { call.results[0].data[table] += call.operands[0].data[at]; });
}

Gradients gather_elements_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "GatherElementsGrad", {dy, request.operands[1]},
                   {{"dim", request.operation.integer("dim")}, {"size", element_positions(request.operation)}});
  });
}

// ---- ScatterAdd: x with updates added to the rows that the indices name

std::vector<TensorType> infer_scatter_add(const Operation& operation) {
  check_indices(operation, 1);
  const Shape& x = operation.operands[0].shape;
  const Shape& indices = operation.operands[1].shape;
  const Shape wanted = x.empty() ? Shape{} : join(indices, {}, slice(x, 1, x.size()));
  if (x.empty() || operation.operands[2].shape != wanted) {
    operand_error(operation, fmt::format("updates are {}; expected {}, of the indices and the rows of {}",
                                         to_string(operation.operands[2].shape), to_string(wanted), to_string(x)));
  }
  return {operation.operands[0]};
}

/// The indices are whole: x would be added once for each piece of them.
ShardingRule scatter_add_rule(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  RuleBuilder builder;
  const DimensionWalk v = builder.add("v", x[0]);
  const TensorWalk indices = builder.add_named("b", operation.operands[1].shape, FactorKind::kNeedReplication);
  const TensorWalk post = builder.add_named("h", slice(x, 1, x.size()));
  builder.operand(concatenate({v}, post));
  builder.operand(indices);
  builder.operand(concatenate(indices, post));
  builder.result(concatenate({v}, post));
  return builder.build();
}

void scatter_add_kernel(const KernelCall& call) {
  std::copy_n(call.operands[0].data, num_elements(call.results[0].shape), call.results[0].data);
  for_each_row(call.operands[2].shape, 0, call.operands[1], call.box("v"),
               [&](std::int64_t table, std::int64_t row, std::int64_t width) {
                 for (std::int64_t i = 0; i < width; ++i)
                   call.results[0].data[table + i] += call.operands[2].data[row + i];
               });
}

Gradients scatter_add_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  if (request.needed[0]) gradients[0] = *request.result_gradients[0];
  if (request.needed[2]) {
    gradients[2] = add_one(builder, "Gather", {*request.result_gradients[0], request.operands[1]});
  }
  return gradients;
}

std::int64_t element_extent(const Operation& operation, std::size_t operand) {
  return operand == 1 ? element_positions(operation) : 0;
}

std::int64_t scatter_extent(const Operation& operation, std::size_t operand) {
  return operand == 1 ? operation.operands[0].shape[0] : 0;
}

std::vector<TensorType> infer_index_select(const Operation& operation) {
  if (operation.operands[1].shape.size() != 1) {
    operand_error(operation,
                  fmt::format("index is {}; expected one dimension", to_string(operation.operands[1].shape)));
  }
  return infer_gather(operation);
}

std::int64_t gather_extent(const Operation& operation, std::size_t operand) {
  return operand == 1 ? gather_shapes(operation).v : 0;
}

std::int64_t segment_extent(const Operation& operation, std::size_t operand) {
  return operand == 1 ? operation.integer("num_segments") : 0;
}

std::int64_t one_hot_extent(const Operation& operation, std::size_t) { return operation.integer("depth"); }

/// What picks rows of its first operand by its second.
OperatorType lookup(std::string name, const char* signature, std::string axis,
                    std::vector<TensorType> (*infer)(const Operation&)) {
  return {.name = std::move(name),
          .signature = signature,
          .attributes = {integer("axis", 0, std::move(axis))},
          .infer = infer,
          .rule_text = "v h, b -> b h; v: sum, of masked rows",
          .rule = gather_rule,
          .linear = {{Signature(signature).operands[0]}},
          .kernel = gather_kernel,
          .flops_per_point = 0,
          .index_extent = gather_extent,
          .picks_elements = true};
}

}  // namespace

std::vector<OperatorType> indexing_operators() {
  OperatorType gather = lookup("Gather", "params, indices -> y", "of params, along which indices pick", infer_gather);
  gather.gradient = gather_gradient;
  gather.role = OperatorRole::kLookup;
  OperatorType select = lookup("IndexSelect", "x, index -> y", "of x, along which the index picks", infer_index_select);
  select.gradient = gather_gradient;
  OperatorType sparse_gather =
      lookup("SparseGatherV2", "params, indices -> y", "of params, along which indices pick: 0", infer_sparse_gather);
  sparse_gather.role = OperatorRole::kLookup;
  sparse_gather.updates_rows = true;
  sparse_gather.notes =
      "training  params has no gradient of its own size: only the rows that were looked up are updated, by sgd\n"
      "          or adam without weight_decay (whose moments then decay only in such steps)";
  return {
      std::move(gather),
      {.name = "GatherGrad",
       .signature = "dy, indices -> dparams",
       .attributes = {integer("axis", 0, "as the forward operator's"),
                      integer("size", std::nullopt, "of params along it")},
       .infer = infer_scatter_rows,
       .rule_text = "b h, b -> v h; b: sum",
       .rule = scatter_rows_rule,
       .linear = {{"dy"}},
       .kernel = scatter_rows_kernel,
       .flops_per_point = 0,
       .is_internal = true},
      std::move(select),
      std::move(sparse_gather),
      {.name = "GatherElements",
       .signature = "x, indices -> y",
       .attributes = {integer("dim", std::nullopt, "of x, along which each index picks one element")},
       .infer = infer_gather_elements,
       .rule_text = "... v, ... j -> ... j; v: sum, of masked elements",
       .rule = gather_elements_rule,
       .linear = {{"x"}},
       .kernel = gather_elements_kernel,
       .gradient = gather_elements_gradient,
       .flops_per_point = 0,
       .index_extent = element_extent,
       .picks_elements = true},
      {.name = "GatherElementsGrad",
       .signature = "dy, indices -> dx",
       .attributes = {integer("dim", std::nullopt, "as the forward operator's"),
                      integer("size", std::nullopt, "of x along it")},
       .infer = infer_gather_elements_grad,
       .rule_text = "... j, ... j -> ... v; j: sum",
       .rule = gather_elements_grad_rule,
       .linear = {{"dy"}},
       .kernel = gather_elements_grad_kernel,
       .flops_per_point = 0,
       .is_internal = true},
      {.name = "ScatterAdd",
       .signature = "x, indices, updates -> y",
       .infer = infer_scatter_add,
       .rule_text = "v h, b, b h -> v h; b: whole",
       .rule = scatter_add_rule,
       .linear = {{"x", "updates"}},
       .kernel = scatter_add_kernel,
       .gradient = scatter_add_gradient,
       .flops_per_point = 0,
       .index_extent = scatter_extent},
      {.name = "UnsortedSegmentSum",
       .signature = "x, segment_ids -> y",
       .attributes = {integer("num_segments", std::nullopt, "rows of the result")},
       .infer = infer_scatter_rows,
       .rule_text = "b h, b -> v h; b: sum",
       .rule = scatter_rows_rule,
       .linear = {{"x"}},
       .kernel = scatter_rows_kernel,
       .gradient = segment_sum_gradient,
       .flops_per_point = 0,
       .index_extent = segment_extent},
      {.name = "OneHot",
       .signature = "indices -> y",
       .attributes = {integer("depth", std::nullopt, "size of the new dimension"),
                      number("on_value", 1, "where the index is"), number("off_value", 0, "elsewhere"),
                      integer("axis", -1, "the new dimension"), text("dtype", "f32", "of the result")},
       .infer = infer_one_hot,
       .rule_text = "b -> b depth",
       .rule = one_hot_rule,
       .kernel = one_hot_kernel,
       .index_extent = one_hot_extent},
      {.name = "Range",
       .signature = " -> y",
       .attributes = {number("start", 0, "first value"), number("limit", std::nullopt, "values stay below"),
                      number("delta", 1, "step"), text("dtype", "i32", "of the result")},
       .infer = infer_range,
       .rule_text = " -> a",
       .rule = range_rule,
       .kernel = range_kernel},
  };
}

}  // namespace shardplan
