// Channels are (group, channel within the group). All three kernels are matrix products over patches: row (i, kh, kw)
// of a patch matrix holds, for every point (n, h, w) of the output, the input that this weight meets there, 0 in the
// padding.
#include "operators/families/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/matrix_product.h"
#include "operators/building/rule_builder.h"
#include "operators/building/sliding_window.h"

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
                                         to_string(x), to_string(weight)));
  }
  if (conv.groups < 1 || x[1] % conv.groups != 0 || weight[0] % conv.groups != 0 || x[1] / conv.groups != weight[1]) {
    operand_error(operation, fmt::format("{} channels of x, a weight {} and group {} do not fit", x[1],
                                         to_string(weight), conv.groups));
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
                  fmt::format("dy is {}; expected {}", to_string(operation.operands[0].shape), to_string(conv.y)));
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

/// Some images' points of the output, for the patches of one group.
struct Chunk {
  std::int64_t first = 0;  // image
  std::int64_t images = 0;
  std::int64_t group = 0;
  std::int64_t points = 0;  // images * points of a plane
};

/// Calls body(chunk) so that a chunk's patches stay small.
template <class Body>
void for_each_chunk(const ChannelLoops& loops, std::int64_t rows, std::int64_t plane, Body body) {
  constexpr std::int64_t kMostElements = 1 << 20;
  const std::int64_t most = std::max<std::int64_t>(1, kMostElements / std::max<std::int64_t>(1, rows * plane));
  for (std::int64_t group = 0; group < loops.groups; ++group) {
    for (std::int64_t first = 0; first < loops.n; first += most) {
      const std::int64_t images = std::min(most, loops.n - first);
      body(Chunk{first, images, group, images * plane});
    }
  }
}

/// Calls body(row of the patches, point of the chunk, offset in x, count, step in x) for all runs of a chunk.
template <class Body>
void for_each_patch(const ChannelLoops& loops, const Convolution& conv, const Chunk& chunk, const Plane& x,
                    const Plane& y, Body body) {
  const std::int64_t kernel = conv.weight[2] * conv.weight[3];
  for (std::int64_t image = 0; image < chunk.images; ++image) {
    for (std::int64_t i = 0; i < loops.in; ++i) {
      const std::int64_t x_plane = ((chunk.first + image) * loops.groups + chunk.group) * loops.in + i;
      for (std::int64_t k = 0; k < kernel; ++k) {
        for_each_run(conv.windows, k / conv.weight[3], k % conv.weight[3], x, y,
                     [&](std::int64_t in, std::int64_t out, std::int64_t count, std::int64_t step) {
                       body(i * kernel + k, image * y.size() + out, x_plane * x.size() + in, count, step);
                     });
      }
    }
  }
}

/// Calls body(offset in [out, points], offset in y, count) for the planes of a chunk.
template <class Body>
void for_each_plane(const ChannelLoops& loops, const Chunk& chunk, const Plane& y, Body body) {
  for (std::int64_t o = 0; o < loops.out; ++o) {
    for (std::int64_t image = 0; image < chunk.images; ++image) {
      const std::int64_t plane = ((chunk.first + image) * loops.groups + chunk.group) * loops.out + o;
      body(o * chunk.points + image * y.size(), plane * y.size(), y.size());
    }
  }
}

/// dy of a chunk as [out, points].
std::vector<double> pack_planes(const ChannelLoops& loops, const Chunk& chunk, const Plane& y, const double* dy) {
  std::vector<double> packed(static_cast<std::size_t>(loops.out * chunk.points));
  for_each_plane(loops, chunk, y, [&](std::int64_t at, std::int64_t in_y, std::int64_t count) {
    std::copy_n(dy + in_y, count, packed.begin() + at);
  });
  return packed;
}

Plane result_plane(const KernelCall& call) {
  const Box h = call.box("h");
  const Box w = call.box("w");
  return {{h.begin, h.end}, {w.begin, w.end}};
}

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
  return builder.build();
}

void conv2d_kernel(const KernelCall& call) {
  const Convolution conv = of_forward(call.operation);
  const Plane x = Plane::of(call.operands[0]);
  const Plane y = result_plane(call);
  const ChannelLoops loops(call);
  const std::int64_t rows = loops.in * conv.weight[2] * conv.weight[3];
  for_each_chunk(loops, rows, y.size(), [&](const Chunk& chunk) {
    std::vector<double> patches(static_cast<std::size_t>(rows * chunk.points), 0.0);
    for_each_patch(loops, conv, chunk, x, y,
                   [&](std::int64_t row, std::int64_t point, std::int64_t in, std::int64_t count, std::int64_t step) {
                     double* to = patches.data() + row * chunk.points + point;
                     const double* from = call.operands[0].data + in;
                     for (std::int64_t j = 0; j < count; ++j) to[j] = from[j * step];
                   });
    std::vector<double> product(static_cast<std::size_t>(loops.out * chunk.points), 0.0);
    multiply_add(loops.out, chunk.points, rows, call.operands[1].data + chunk.group * loops.out * rows, patches.data(),
                 product.data());
    for_each_plane(loops, chunk, y, [&](std::int64_t at, std::int64_t in_y, std::int64_t count) {
      std::copy_n(product.begin() + at, count, call.results[0].data + in_y);
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
  return builder.build();
}

void conv2d_backprop_input_kernel(const KernelCall& call) {
  const Convolution conv = of_backprop_input(call.operation);
  const Plane y = Plane::of(call.operands[0]);
  const Shape& local = call.results[0].shape;
  const Plane x = {backward_range(call, conv.windows[0], "h", local[2]),
                   backward_range(call, conv.windows[1], "w", local[3])};
  const ChannelLoops loops(call);
  const std::int64_t rows = loops.in * conv.weight[2] * conv.weight[3];
  for_each_chunk(loops, rows, y.size(), [&](const Chunk& chunk) {
    const double* weight = call.operands[1].data + chunk.group * loops.out * rows;
    std::vector<double> transposed(static_cast<std::size_t>(rows * loops.out));
    for (std::int64_t o = 0; o < loops.out; ++o) {
      for (std::int64_t row = 0; row < rows; ++row) {
        transposed[static_cast<std::size_t>(row * loops.out + o)] = weight[o * rows + row];
      }
    }
    const std::vector<double> dy = pack_planes(loops, chunk, y, call.operands[0].data);
    std::vector<double> patches(static_cast<std::size_t>(rows * chunk.points), 0.0);
    multiply_add(rows, chunk.points, loops.out, transposed.data(), dy.data(), patches.data());
    for_each_patch(loops, conv, chunk, x, y,
                   [&](std::int64_t row, std::int64_t point, std::int64_t in, std::int64_t count, std::int64_t step) {
                     const double* from = patches.data() + row * chunk.points + point;
                     double* to = call.results[0].data + in;
                     for (std::int64_t j = 0; j < count; ++j) to[j * step] += from[j];
                   });
  });
}

/// The forward operator's products, in equal parts: the factors count dx's positions and phases instead.
double conv2d_backprop_input_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  const Convolution conv = of_backprop_input(operation);
  double products = 2 * static_cast<double>(conv.weight[1]);
  for (const std::int64_t size : conv.y) products *= static_cast<double>(size);
  double points = 1;
  double all_points = 1;
  for (std::size_t f = 0; f < extents.size(); ++f) {
    points *= static_cast<double>(extents[f]);
    all_points *= static_cast<double>(operation.rule.factors[f].size);
  }
  return products * static_cast<double>(conv.weight[2]) * static_cast<double>(conv.weight[3]) * (points / all_points);
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
  return builder.build();
}

void conv2d_backprop_filter_kernel(const KernelCall& call) {
  const Convolution conv = of_backprop_filter(call.operation);
  const Plane x = Plane::of(call.operands[1]);
  const Plane y = Plane::of(call.operands[0]);
  const ChannelLoops loops(call);
  const std::int64_t rows = loops.in * conv.weight[2] * conv.weight[3];
  for_each_chunk(loops, rows, y.size(), [&](const Chunk& chunk) {
    std::vector<double> patches(static_cast<std::size_t>(chunk.points * rows), 0.0);  // [points, rows]
    for_each_patch(loops, conv, chunk, x, y,
                   [&](std::int64_t row, std::int64_t point, std::int64_t in, std::int64_t count, std::int64_t step) {
                     double* to = patches.data() + point * rows + row;
                     const double* from = call.operands[1].data + in;
                     for (std::int64_t j = 0; j < count; ++j) to[j * rows] = from[j * step];
                   });
    const std::vector<double> dy = pack_planes(loops, chunk, y, call.operands[0].data);
    multiply_add(loops.out, rows, chunk.points, dy.data(), patches.data(),
                 call.results[0].data + chunk.group * loops.out * rows);
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

/// `size`: of an input or kernel that no operand shows.
std::vector<AttributeSpec> convolution_attributes(std::string size = {}) {
  std::vector<AttributeSpec> attributes = {pad_mode_attribute(), pad_attribute(), height_and_width("stride"),
                                           height_and_width("dilation"),
                                           integer("group", 1, "channels are convolved within groups")};
  if (!size.empty()) attributes.push_back(list(std::move(size), std::nullopt, "height, width"));
  return attributes;
}

}  // namespace

std::vector<OperatorType> convolution_operators() {
  return {
      {.name = "Conv2D",
       .signature = "x, weight -> y",
       .attributes = convolution_attributes(),
       .infer = infer_conv2d,
       .rule_text = "n (g i) s*h+kh s*w+kw, (g o) i kh kw -> n (g o) h w; i: sum; kh, kw: whole",
       .rule = conv2d_rule,
       .linear = {{"x"}, {"weight"}},
       .kernel = conv2d_kernel,
       .gradient = conv2d_gradient,
       .work = WorkKind::kContraction,
       .flops_per_point = 2,
       .notes = "strategy  ((n, i, h, w), (o, i, 1, 1)); h or w cut needs a halo, no wider than the neighbour's piece"},
      {.name = "Conv2DBackpropInput",
       .signature = "dy, weight -> dx",
       .attributes = convolution_attributes("input_size"),
       .infer = infer_conv2d_backprop_input,
       .rule_text = "n (g o) h+kh w+kw, (g o) i 1 1 -> n (g i) (h th) (w tw); o: sum; kh, kw, th, tw: whole",
       .rule = conv2d_backprop_input_rule,
       .linear = {{"dy"}, {"weight"}},
       .kernel = conv2d_backprop_input_kernel,
       .work = WorkKind::kContraction,
       .flops = conv2d_backprop_input_flops,
       .is_internal = true},
      {.name = "Conv2DBackpropFilter",
       .signature = "dy, x -> dweight",
       .attributes = convolution_attributes("kernel_size"),
       .infer = infer_conv2d_backprop_filter,
       .rule_text = "n (g o) h w, n (g i) s*h+kh s*w+kw -> (g o) i kh kw; n, h, w: sum; kh, kw: whole",
       .rule = conv2d_backprop_filter_rule,
       .linear = {{"dy"}, {"x"}},
       .kernel = conv2d_backprop_filter_kernel,
       .work = WorkKind::kContraction,
       .flops_per_point = 2,
       .is_internal = true},
  };
}

}  // namespace shardplan
