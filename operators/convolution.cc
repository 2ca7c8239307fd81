// Channels are (group, channel within the group). All three kernels visit the same products weight * x * dy; the inner
// loop runs over the widths that lie in the tensor, so that padding costs nothing.
#include "operators/convolution.h"

#include <fmt/format.h>

#include "operators/gradient_support.h"
#include "operators/rule_builder.h"
#include "operators/sliding_window.h"

namespace shardplan {
namespace {

/// A convolution of x, weight and y, whichever of them are operands.
struct Convolution {
  Shape x, weight, y;
  std::int64_t groups = 1;
  SpatialWindows windows;
};

Convolution make_convolution(const Operation& operation, const Shape& x, const Shape& weight) {
  Convolution conv;
  conv.groups = operation.integer("group");
  if (x.size() != 4 || weight.size() != 4) {
    operand_error(operation, fmt::format("needs x [n, c, h, w] and weight [out, c, kh, kw], found {} and {}",
                                         shape_text(x), shape_text(weight)));
  }
  if (conv.groups < 1 || x[1] % conv.groups != 0 || weight[0] % conv.groups != 0 || x[1] / conv.groups != weight[1]) {
    operand_error(operation, fmt::format("{} channels of x, a weight {} and group {} do not fit", x[1],
                                         shape_text(weight), conv.groups));
  }
  conv.windows = spatial_windows(operation, {x[2], x[3]}, {weight[2], weight[3]});
  conv.x = x;
  conv.weight = weight;
  conv.y = {x[0], weight[0], conv.windows[0].output, conv.windows[1].output};
  return conv;
}

Convolution of_forward(const Operation& operation) {
  return make_convolution(operation, operation.operands[0].shape, operation.operands[1].shape);
}

void check_gradient_shape(const Operation& operation, const Convolution& conv) {
  if (operation.operands[0].shape != conv.y) {
    operand_error(operation,
                  fmt::format("dy is {}; expected {}", shape_text(operation.operands[0].shape), shape_text(conv.y)));
  }
}

Convolution of_backprop_input(const Operation& operation) {
  const Shape& dy = operation.operands[0].shape;
  const Shape& weight = operation.operands[1].shape;
  const std::array<std::int64_t, 2> size = pair_attribute(operation, "input_size");
  if (dy.size() != 4 || weight.size() != 4) operand_error(operation, "needs dy and weight of 4 dimensions");
  return make_convolution(operation, {dy[0], weight[1] * operation.integer("group"), size[0], size[1]}, weight);
}

Convolution of_backprop_filter(const Operation& operation) {
  const Shape& dy = operation.operands[0].shape;
  const Shape& x = operation.operands[1].shape;
  const std::array<std::int64_t, 2> size = pair_attribute(operation, "kernel_size");
  if (dy.size() != 4 || x.size() != 4 || operation.integer("group") < 1)
    operand_error(operation, "needs dy and x of 4 dimensions");
  return make_convolution(operation, x, {dy[1], x[1] / operation.integer("group"), size[0], size[1]});
}

/// Walks of batch and channels, which all three operators share.
struct ChannelWalks {
  DimensionWalk n, x_channels, y_channels, weight_in;

  ChannelWalks(RuleBuilder& builder, const Convolution& conv, FactorKind n_kind, FactorKind in_kind,
               FactorKind out_kind) {
    n = builder.add("n", conv.x[0], n_kind);
    const DimensionWalk g = conv.groups == 1 ? whole() : builder.add("g", conv.groups);
    const DimensionWalk in = builder.add("i", conv.weight[1], in_kind);
    const DimensionWalk out = builder.add("o", conv.weight[0] / conv.groups, out_kind);
    x_channels = product(g, in);
    y_channels = product(g, out);
    weight_in = in;
  }
};

/// Local extents of the loops over batch and channels.
struct ChannelLoops {
  std::int64_t n, groups, in, out;

  explicit ChannelLoops(const KernelCall& call)
      : n(call.box("n").size()),
        groups(call.operation.rule.find("g") ? call.box("g").size() : 1),
        in(call.box("i").size()),
        out(call.box("o").size()) {}
};

/// A plane of a local tensor, and where it lies in the global one.
struct Plane {
  Interval rows, columns;

  static Plane of(const OperandView& view) {
    return {{view.begin[2], view.begin[2] + view.shape[2]}, {view.begin[3], view.begin[3] + view.shape[3]}};
  }
  std::int64_t width() const { return columns.end - columns.begin; }
  std::int64_t size() const { return (rows.end - rows.begin) * width(); }
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    return (row - rows.begin) * width() + column - columns.begin;
  }
};

/// Calls body(offset in x, offset in y, count, step in x) for each run of products of one weight in one pair of planes.
template <class Body>
void for_each_run(const SpatialWindows& windows, std::int64_t kh, std::int64_t kw, const Plane& x, const Plane& y,
                  Body body) {
  const Interval rows = windows[0].outputs_reading(kh, x.rows, y.rows);
  const Interval columns = windows[1].outputs_reading(kw, x.columns, y.columns);
  if (columns.begin >= columns.end) return;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    body(x.offset(windows[0].position(i, kh), windows[1].position(columns.begin, kw)), y.offset(i, columns.begin),
         columns.end - columns.begin, windows[1].stride);
  }
}

/// Calls body(x plane, y plane, weight index, kh, kw) for all local channels, batch entries and kernel positions.
template <class Body>
void for_each_weight(const ChannelLoops& loops, const Convolution& conv, Body body) {
  const std::int64_t kernel = conv.weight[2] * conv.weight[3];
  for (std::int64_t n = 0; n < loops.n; ++n) {
    for (std::int64_t g = 0; g < loops.groups; ++g) {
      for (std::int64_t o = 0; o < loops.out; ++o) {
        const std::int64_t y_plane = (n * loops.groups + g) * loops.out + o;
        for (std::int64_t i = 0; i < loops.in; ++i) {
          const std::int64_t x_plane = (n * loops.groups + g) * loops.in + i;
          const std::int64_t weight = ((g * loops.out + o) * loops.in + i) * kernel;
          for (std::int64_t k = 0; k < kernel; ++k) {
            body(x_plane, y_plane, weight + k, k / conv.weight[3], k % conv.weight[3]);
          }
        }
      }
    }
  }
}

Plane result_plane(const KernelCall& call) {
  const Box h = call.box("h");
  const Box w = call.box("w");
  return {{h.begin, h.end}, {w.begin, w.end}};
}

}  // namespace

std::vector<TensorType> infer_conv2d(const Operation& operation) {
  return {{of_forward(operation).y, operation.operands[0].dtype}};
}

ShardingRule conv2d_rule(const Operation& operation) {
  const Convolution conv = of_forward(operation);
  RuleBuilder builder;
  const ChannelWalks walks(builder, conv, FactorKind::kPassThrough, FactorKind::kReduction, FactorKind::kPassThrough);
  const ForwardWalk h = forward_walk(builder, conv.windows[0], "h");
  const ForwardWalk w = forward_walk(builder, conv.windows[1], "w");
  builder.operand({walks.n, walks.x_channels, h.input, w.input});
  builder.operand({walks.y_channels, walks.weight_in, h.offset, w.offset});
  builder.result({walks.n, walks.y_channels, h.output, w.output});
  builder.linear({0});
  builder.linear({1});
  return builder.build();
}

void conv2d_kernel(const KernelCall& call) {
  const Convolution conv = of_forward(call.operation);
  const Plane x = Plane::of(call.operands[0]);
  const Plane y = result_plane(call);
  for_each_weight(
      ChannelLoops(call), conv,
      [&](std::int64_t x_plane, std::int64_t y_plane, std::int64_t weight, std::int64_t kh, std::int64_t kw) {
        const double factor = call.operands[1].data[weight];
        const double* from = call.operands[0].data + x_plane * x.size();
        double* to = call.results[0].data + y_plane * y.size();
        for_each_run(conv.windows, kh, kw, x, y,
                     [&](std::int64_t in, std::int64_t out, std::int64_t count, std::int64_t step) {
                       for (std::int64_t j = 0; j < count; ++j) to[out + j] += factor * from[in + j * step];
                     });
      });
}

std::vector<TensorType> infer_conv2d_backprop_input(const Operation& operation) {
  const Convolution conv = of_backprop_input(operation);
  check_gradient_shape(operation, conv);
  return {{conv.x, operation.operands[0].dtype}};
}

ShardingRule conv2d_backprop_input_rule(const Operation& operation) {
  const Convolution conv = of_backprop_input(operation);
  RuleBuilder builder;
  const ChannelWalks walks(builder, conv, FactorKind::kPassThrough, FactorKind::kPassThrough, FactorKind::kReduction);
  const BackwardWalk h = backward_walk(builder, conv.windows[0], "h", false);
  const BackwardWalk w = backward_walk(builder, conv.windows[1], "w", false);
  builder.operand({walks.n, walks.y_channels, h.output, w.output});
  builder.operand({walks.y_channels, walks.weight_in, whole(), whole()});
  builder.result({walks.n, walks.x_channels, h.input, w.input});
  builder.linear({0});
  builder.linear({1});
  return builder.build();
}

void conv2d_backprop_input_kernel(const KernelCall& call) {
  const Convolution conv = of_backprop_input(call.operation);
  const Plane y = Plane::of(call.operands[0]);
  const Shape& local = call.results[0].shape;
  const Plane x = {backward_range(call, conv.windows[0], "h", local[2]),
                   backward_range(call, conv.windows[1], "w", local[3])};
  for_each_weight(
      ChannelLoops(call), conv,
      [&](std::int64_t x_plane, std::int64_t y_plane, std::int64_t weight, std::int64_t kh, std::int64_t kw) {
        const double factor = call.operands[1].data[weight];
        const double* from = call.operands[0].data + y_plane * y.size();
        double* to = call.results[0].data + x_plane * x.size();
        for_each_run(conv.windows, kh, kw, x, y,
                     [&](std::int64_t in, std::int64_t out, std::int64_t count, std::int64_t step) {
                       for (std::int64_t j = 0; j < count; ++j) to[in + j * step] += factor * from[out + j];
                     });
      });
}

double conv2d_backprop_input_flops(const Operation& operation) {
  const Convolution conv = of_backprop_input(operation);
  double points = 2 * static_cast<double>(conv.weight[1]);
  for (const std::int64_t size : conv.y) points *= static_cast<double>(size);
  return points * static_cast<double>(conv.weight[2]) * static_cast<double>(conv.weight[3]);
}

std::vector<TensorType> infer_conv2d_backprop_filter(const Operation& operation) {
  const Convolution conv = of_backprop_filter(operation);
  check_gradient_shape(operation, conv);
  return {{conv.weight, operation.operands[0].dtype}};
}

ShardingRule conv2d_backprop_filter_rule(const Operation& operation) {
  const Convolution conv = of_backprop_filter(operation);
  RuleBuilder builder;
  const ChannelWalks walks(builder, conv, FactorKind::kReduction, FactorKind::kPassThrough, FactorKind::kPassThrough);
  const ForwardWalk h = forward_walk(builder, conv.windows[0], "h");
  const ForwardWalk w = forward_walk(builder, conv.windows[1], "w");
  builder.set_kind(h.output, FactorKind::kReduction);
  builder.set_kind(w.output, FactorKind::kReduction);
  builder.operand({walks.n, walks.y_channels, h.output, w.output});
  builder.operand({walks.n, walks.x_channels, h.input, w.input});
  builder.result({walks.y_channels, walks.weight_in, h.offset, w.offset});
  builder.linear({0});
  builder.linear({1});
  return builder.build();
}

void conv2d_backprop_filter_kernel(const KernelCall& call) {
  const Convolution conv = of_backprop_filter(call.operation);
  const Plane x = Plane::of(call.operands[1]);
  const Plane y = Plane::of(call.operands[0]);
  for_each_weight(
      ChannelLoops(call), conv,
      [&](std::int64_t x_plane, std::int64_t y_plane, std::int64_t weight, std::int64_t kh, std::int64_t kw) {
        const double* dy = call.operands[0].data + y_plane * y.size();
        const double* from = call.operands[1].data + x_plane * x.size();
        double sum = 0;
        for_each_run(conv.windows, kh, kw, x, y,
                     [&](std::int64_t in, std::int64_t out, std::int64_t count, std::int64_t step) {
                       for (std::int64_t j = 0; j < count; ++j) sum += dy[out + j] * from[in + j * step];
                     });
        call.results[0].data[weight] += sum;
      });
}

Gradients conv2d_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const Shape& x = request.operation.operands[0].shape;
  const Shape& weight = request.operation.operands[1].shape;
  Attributes attributes = request.operation.attributes;
  if (request.needed[0]) {
    attributes["input_size"] = std::vector<std::int64_t>{x[2], x[3]};
    gradients[0] = add_one(builder, "Conv2DBackpropInput", {dy, request.operands[1]}, attributes);
    attributes.erase("input_size");
  }
  if (request.needed[1]) {
    attributes["kernel_size"] = std::vector<std::int64_t>{weight[2], weight[3]};
    gradients[1] = add_one(builder, "Conv2DBackpropFilter", {dy, request.operands[0]}, attributes);
  }
  return gradients;
}

}  // namespace shardplan
