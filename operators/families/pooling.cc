#include "operators/families/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/sliding_window.h"

// Windows are computed once, in global positions (building/sliding_window.h), and each kernel clips them to the tensor,
// so that a device with a halo reads what one device would. Gradients walk the windows that touch the local part of dx;
// a maximum is found again from x.

namespace shardplan {
namespace {

SpatialWindows windows_over(const Operation& operation, const Shape& x) {
  if (x.size() != 4) operand_error(operation, fmt::format("needs an input [n, c, h, w], found {}", to_string(x)));
  return spatial_windows(operation, {x[2], x[3]}, spatial_values(operation, "kernel_size", 2));
}

Shape pooled_shape(const Shape& x, const SpatialWindows& windows) {
  return {x[0], x[1], windows[0].output, windows[1].output};
}

/// The shape of x of AvgPoolGrad, whose only operand is dy.
Shape avg_pool_input(const Operation& operation) {
  const Shape& dy = operation.operands[0].shape;
  const std::vector<std::int64_t> size = spatial_values(operation, "input_size", 2);
  if (dy.size() != 4) operand_error(operation, "needs dy of 4 dimensions");
  return {dy[0], dy[1], size[0], size[1]};
}

void check_pooled(const Operation& operation, const Shape& wanted) {
  if (operation.operands[0].shape != wanted) {
    operand_error(operation,
                  fmt::format("dy is {}; expected {}", to_string(operation.operands[0].shape), to_string(wanted)));
  }
}

/// The input positions of output i, clipped to the tensor.
Interval reads_of(const SlidingWindow& window, std::int64_t i) {
  return {std::max<std::int64_t>(0, window.position(i, 0)),
          std::min<std::int64_t>(window.input, window.position(i, window.kernel - 1) + 1)};
}

/// Calls body(result, rows, columns, x plane) for each local result, whose window is rows x columns of x.
template <class Body>
void for_each_window(const KernelCall& call, Body body) {
  const SpatialWindows windows = windows_over(call.operation, call.operation.operands[0].shape);
  const Box h = call.box("h");
  const Box w = call.box("w");
  const OperandView& x = call.operands[0];
  const std::int64_t planes = x.shape[0] * x.shape[1];
  double* result = call.results[0].data;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    // The offset that position (0, 0) of the global plane would have.
    const double* origin = x.data + plane * x.shape[2] * x.shape[3];
    for (std::int64_t i = h.begin; i < h.end; ++i) {
      for (std::int64_t j = w.begin; j < w.end; ++j) {
        const Interval rows = reads_of(windows[0], i);
        const Interval columns = reads_of(windows[1], j);
        body(*result++, rows, columns, [&](std::int64_t row, std::int64_t column) {
          return origin[(row - x.begin[2]) * x.shape[3] + column - x.begin[3]];
        });
      }
    }
  }
}

/// Calls body(plane, dy, rows, columns) for each local output of dy whose window touches the local part of dx.
template <class Body>
void for_each_touching(const KernelCall& call, const SpatialWindows& windows, const Interval& rows,
                       const Interval& columns, Body body) {
  const OperandView& dy = call.operands[0];
  const std::int64_t planes = dy.shape[0] * dy.shape[1];
  const double* value = dy.data;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t i = dy.begin[2]; i < dy.begin[2] + dy.shape[2]; ++i) {
      const Interval window_rows = reads_of(windows[0], i);
      for (std::int64_t j = dy.begin[3]; j < dy.begin[3] + dy.shape[3]; ++j, ++value) {
        const Interval window_columns = reads_of(windows[1], j);
        const bool touches = window_rows.begin < rows.end && rows.begin < window_rows.end &&
                             window_columns.begin < columns.end && columns.begin < window_columns.end;
        if (touches) body(plane, *value, window_rows, window_columns);
      }
    }
  }
}

std::vector<TensorType> infer_pool(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const SpatialWindows windows = windows_over(operation, x.shape);
  for (const SlidingWindow& window : windows) {
    if (window.pad_before >= window.kernel || window.pad_after >= window.kernel) {
      operand_error(operation, fmt::format("padding {} and {} reach the window's size {}", window.pad_before,
                                           window.pad_after, window.kernel));
    }
  }
  return {{pooled_shape(x.shape, windows), x.dtype}};
}

ShardingRule pool_rule(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  const SpatialWindows windows = windows_over(operation, x);
  RuleBuilder builder;
  const DimensionWalk n = builder.add("n", x[0]);
  const DimensionWalk c = builder.add("c", x[1]);
  const ForwardWalk h = forward_walk(builder, windows[0], "h");
  const ForwardWalk w = forward_walk(builder, windows[1], "w");
  builder.operand({n, c, h.input, w.input});
  builder.result({n, c, h.output, w.output});
  return builder.build();
}

void max_pool_kernel(const KernelCall& call) {
  for_each_window(call, [](double& result, const Interval& rows, const Interval& columns, auto at) {
    result = -std::numeric_limits<double>::infinity();
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t column = columns.begin; column < columns.end; ++column)
        result = std::max(result, at(row, column));
    }
  });
}

void avg_pool_kernel(const KernelCall& call) {
  for_each_window(call, [](double& result, const Interval& rows, const Interval& columns, auto at) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t column = columns.begin; column < columns.end; ++column) result += at(row, column);
    }
    result /= static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
  });
}

std::vector<TensorType> infer_max_pool_grad(const Operation& operation) {
  const Shape& x = operation.operands[1].shape;
  check_pooled(operation, pooled_shape(x, windows_over(operation, x)));
  return {operation.operands[1]};
}

ShardingRule max_pool_grad_rule(const Operation& operation) {
  const Shape& x = operation.operands[1].shape;
  const SpatialWindows windows = windows_over(operation, x);
  RuleBuilder builder;
  const DimensionWalk n = builder.add("n", x[0]);
  const DimensionWalk c = builder.add("c", x[1]);
  const BackwardWalk h = backward_walk(builder, windows[0], "h", true);
  const BackwardWalk w = backward_walk(builder, windows[1], "w", true);
  builder.operand({n, c, h.output, w.output});
  builder.operand({n, c, h.input_window, w.input_window});
  builder.result({n, c, h.input, w.input});
  return builder.build();
}

void max_pool_grad_kernel(const KernelCall& call) {
  const SpatialWindows windows = windows_over(call.operation, call.operation.operands[1].shape);
  const Shape& local = call.results[0].shape;
  const Interval rows = backward_range(call, windows[0], "h", local[2]);
  const Interval columns = backward_range(call, windows[1], "w", local[3]);
  const OperandView& x = call.operands[1];
  for_each_touching(
      call, windows, rows, columns,
      [&](std::int64_t plane, double dy, const Interval& window_rows, const Interval& window_columns) {
        const double* origin = x.data + plane * x.shape[2] * x.shape[3];
        double largest = -std::numeric_limits<double>::infinity();
        std::int64_t best_row = window_rows.begin;
        std::int64_t best_column = window_columns.begin;
        for (std::int64_t row = window_rows.begin; row < window_rows.end; ++row) {
          for (std::int64_t column = window_columns.begin; column < window_columns.end; ++column) {
            const double value = origin[(row - x.begin[2]) * x.shape[3] + column - x.begin[3]];
            if (value <= largest) continue;
            largest = value;
            best_row = row;
            best_column = column;
          }
        }
        const bool is_mine =
            best_row >= rows.begin && best_row < rows.end && best_column >= columns.begin && best_column < columns.end;
        if (!is_mine) return;
        call.results[0].data[(plane * local[2] + best_row - rows.begin) * local[3] + best_column - columns.begin] += dy;
      });
}

std::vector<TensorType> infer_avg_pool_grad(const Operation& operation) {
  const Shape x = avg_pool_input(operation);
  check_pooled(operation, pooled_shape(x, windows_over(operation, x)));
  return {{x, operation.operands[0].dtype}};
}

ShardingRule avg_pool_grad_rule(const Operation& operation) {
  const Shape x = avg_pool_input(operation);
  const SpatialWindows windows = windows_over(operation, x);
  RuleBuilder builder;
  const DimensionWalk n = builder.add("n", x[0]);
  const DimensionWalk c = builder.add("c", x[1]);
  const BackwardWalk h = backward_walk(builder, windows[0], "h", false);
  const BackwardWalk w = backward_walk(builder, windows[1], "w", false);
  builder.operand({n, c, h.output, w.output});
  builder.result({n, c, h.input, w.input});
  return builder.build();
}

void avg_pool_grad_kernel(const KernelCall& call) {
  const SpatialWindows windows = windows_over(call.operation, avg_pool_input(call.operation));
  const Shape& local = call.results[0].shape;
  const Interval rows = backward_range(call, windows[0], "h", local[2]);
  const Interval columns = backward_range(call, windows[1], "w", local[3]);
  for_each_touching(
      call, windows, rows, columns,
      [&](std::int64_t plane, double dy, const Interval& window_rows, const Interval& window_columns) {
        const double share = dy / static_cast<double>((window_rows.end - window_rows.begin) *
                                                      (window_columns.end - window_columns.begin));
        for (std::int64_t row = std::max(rows.begin, window_rows.begin); row < std::min(rows.end, window_rows.end);
             ++row) {
          for (std::int64_t column = std::max(columns.begin, window_columns.begin);
               column < std::min(columns.end, window_columns.end); ++column) {
            call.results[0].data[(plane * local[2] + row - rows.begin) * local[3] + column - columns.begin] += share;
          }
        }
      });
}

Gradients max_pool_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "MaxPoolGrad", {dy, request.operands[0]}, request.operation.attributes);
  });
}

Gradients avg_pool_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    const Shape& x = request.operation.operands[0].shape;
    Attributes attributes = request.operation.attributes;
    attributes["input_size"] = std::vector<std::int64_t>{x[2], x[3]};
    return add_one(builder, "AvgPoolGrad", {dy}, attributes);
  });
}

/// `size`: of an input that no operand shows.
std::vector<AttributeSpec> pool_attributes(std::string size = {}) {
  std::vector<AttributeSpec> attributes = {spatial_attribute("kernel_size", 2), spatial_attribute("strides", 2),
                                           pad_mode_attribute(), pad_attribute(2)};
  if (!size.empty()) attributes.push_back(list(std::move(size), std::nullopt, "height, width"));
  return attributes;
}

}  // namespace

std::vector<OperatorType> pooling_operators() {
  const std::string rule_text = "n c s*h+kh s*w+kw -> n c h w; kh, kw: whole";
  return {
      {.name = "MaxPool",
       .signature = "x -> y",
       .attributes = pool_attributes(),
       .infer = infer_pool,
       .rule_text = rule_text,
       .rule = pool_rule,
       .kernel = max_pool_kernel,
       .gradient = max_pool_gradient},
      {.name = "MaxPoolGrad",
       .signature = "dy, x -> dx",
       .attributes = pool_attributes(),
       .infer = infer_max_pool_grad,
       .rule_text = "n c h+kh w+kw, n c s*h+rh s*w+rw -> n c (h th) (w tw); kh, kw, rh, rw, th, tw: whole",
       .rule = max_pool_grad_rule,
       .linear = {{"dy"}},
       .kernel = max_pool_grad_kernel,
       .is_internal = true},
      {.name = "AvgPool",
       .signature = "x -> y",
       .attributes = pool_attributes(),
       .infer = infer_pool,
       .rule_text = rule_text,
       .rule = pool_rule,
       .linear = {{"x"}},
       .kernel = avg_pool_kernel,
       .gradient = avg_pool_gradient},
      {.name = "AvgPoolGrad",
       .signature = "dy -> dx",
       .attributes = pool_attributes("input_size"),
       .infer = infer_avg_pool_grad,
       .rule_text = "n c h+kh w+kw -> n c (h th) (w tw); kh, kw, th, tw: whole",
       .rule = avg_pool_grad_rule,
       .linear = {{"dy"}},
       .kernel = avg_pool_grad_kernel,
       .is_internal = true},
  };
}

}  // namespace shardplan
