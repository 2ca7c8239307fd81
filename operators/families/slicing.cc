#include "operators/families/slicing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

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
  return operation.type->name == "SliceGrad" ? operation.list("shape") : operation.operands[0].shape.items();
}

std::vector<TensorType> infer_slice(const Operation& operation) {
  return {{slice_bounds(operation, operation.operands[0].shape).size, operation.operands[0].dtype}};
}

std::vector<TensorType> infer_slice_grad(const Operation& operation) {
  const Shape& full = operation.list("shape");
  if (slice_bounds(operation, full).size != operation.operands[0].shape) {
    operand_error(operation, fmt::format("the input {} is not such a slice of {}",
                                         to_string(operation.operands[0].shape), to_string(full)));
  }
  return {{full, operation.operands[0].dtype}};
}

/// Dimensions that are taken as a whole pass through, others stay whole.
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
  return builder.build();
}

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

/// Serves Slice and StridedSlice.
Gradients slice_gradient(GradientBuilder& builder, const GradientRequest& request) {
  const Operation& operation = request.operation;
  const Shape& shape = operation.operands[0].shape;
  const bool is_strided = operation.type->name == "StridedSlice";
  Attributes attributes = {{"shape", shape}, {"begin", operation.list("begin")}};
  if (is_strided) {
    attributes["end"] = operation.list("end");
    attributes["strides"] = operation.list("strides");
  } else {
    std::vector<std::int64_t> end;
    for (std::size_t d = 0; d < operation.list("begin").size(); ++d) {
      end.push_back(operation.list("begin")[d] + operation.results[0].shape[d]);
    }
    attributes["end"] = end;
  }
  return gradient_of_first(request, [&](TensorId dy) { return add_one(builder, "SliceGrad", {dy}, attributes); });
}

std::vector<AttributeSpec> strided_slice_attributes() {
  return {list("begin", std::nullopt, "first position in each dimension"),
          list("end", std::nullopt, "first position after the slice; negative: from the end"),
          list("strides", empty_list(), "steps; 1 if empty")};
}

}  // namespace

std::vector<OperatorType> slicing_operators() {
  const std::string rule_text = "dimensions taken whole pass through, others stay whole";
  return {
      {.name = "Slice",
       .signature = "x -> y",
       .attributes = {list("begin", std::nullopt, "first position in each dimension"),
                      list("size", std::nullopt, "how many; -1: to the end")},
       .infer = infer_slice,
       .rule_text = rule_text,
       .rule = slice_rule,
       .linear = {{"x"}},
       .monotone = {{"x"}},
       .kernel = slice_kernel,
       .gradient = slice_gradient,
       .flops_per_point = 0,
       .moves_elements = true,
       .picks_elements = true},
      {.name = "StridedSlice",
       .signature = "x -> y",
       .attributes = strided_slice_attributes(),
       .infer = infer_slice,
       .rule_text = rule_text,
       .rule = slice_rule,
       .linear = {{"x"}},
       .monotone = {{"x"}},
       .kernel = slice_kernel,
       .gradient = slice_gradient,
       .flops_per_point = 0,
       .moves_elements = true,
       .picks_elements = true},
      {.name = "SliceGrad",
       .signature = "dy -> dx",
       .attributes = {list("shape", std::nullopt, "of x"), list("begin", std::nullopt, "as StridedSlice"),
                      list("end", std::nullopt, "as StridedSlice"), list("strides", empty_list(), "as StridedSlice")},
       .infer = infer_slice_grad,
       .rule_text = rule_text,
       .rule = slice_rule,
       .linear = {{"dy"}},
       .kernel = slice_grad_kernel,
       .flops_per_point = 0,
       .is_internal = true},
  };
}

}  // namespace shardplan
