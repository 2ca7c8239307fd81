// Channels are (group, channel within the group). All three kernels are matrix products over patches: row (i, kd, kh,
// kw) of a patch matrix holds, for every point (n, d, h, w) of the output, the input that this weight meets there, 0 in
// the padding. They see three spatial dimensions always; those that an operator lacks have one position.
#include "operators/families/convolution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/integer.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/matrix_product.h"
#include "operators/building/rule_builder.h"
#include "operators/building/sliding_window.h"
#include "operators/building/volume.h"

namespace shardplan {
namespace {

/// A convolution of x, weight and y, whichever of them are operands.
struct Convolution {
  Shape x, weight, y;
  std::int64_t groups = 1;
  SpatialWindows windows;

  /// Weights of one pair of channels.
  std::int64_t taps() const { return num_elements(spatial(weight)); }
  static Shape spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }
};

Shape with_channels(std::int64_t n, std::int64_t channels, const Shape& spatial) {
  Shape shape = {n, channels};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

Convolution make_convolution(const Operation& operation, const Shape& x, const Shape& weight) {
  Convolution conv;
  conv.groups = operation.integer("group");
  if (conv.groups < 1 || x[1] % conv.groups != 0 || weight[0] % conv.groups != 0 || x[1] / conv.groups != weight[1]) {
    operand_error(operation, fmt::format("{} channels of x, a weight {} and group {} do not fit", x[1],
                                         to_string(weight), conv.groups));
  }
  conv.windows = spatial_windows(operation, Convolution::spatial(x), Convolution::spatial(weight));
  conv.x = x;
  conv.weight = weight;
  Shape outputs;
  for (const SlidingWindow& window : conv.windows) outputs.push_back(window.output);
  conv.y = with_channels(x[0], weight[0], outputs);
  return conv;
}

Convolution of_forward(const Operation& operation) {
  return make_convolution(operation, operation.operands[0].shape, operation.operands[1].shape);
}

void check_gradient_shape(const Operation& operation, const Convolution& conv) {
  if (operation.operands[0].shape != conv.y) {
    operand_error(operation, fmt::format("{} is {}; expected {}", operation.type->signature.operands[0],
                                         to_string(operation.operands[0].shape), to_string(conv.y)));
  }
}

std::size_t num_spatial(const Operation& operation) { return operation.operands[0].shape.size() - 2; }

/// Serves ConvNDBackpropInput, which is given the input's extents, and ConvNDTranspose, which computes them.
Convolution of_backprop_input(const Operation& operation) {
  const Shape& dy = operation.operands[0].shape;
  const Shape& weight = operation.operands[1].shape;
  const Shape extents = operation.attributes.contains("input_size")
                            ? spatial_values(operation, "input_size", num_spatial(operation))
                            : transposed_extents(operation, Convolution::spatial(dy), Convolution::spatial(weight));
  if (operation.integer("group") < 1) operand_error(operation, "group is not positive");
  const std::optional<std::int64_t> channels = checked_multiply(weight[1], operation.integer("group"));
  return make_convolution(operation, with_channels(dy[0], checked_size(operation, channels), extents), weight);
}

Convolution of_backprop_filter(const Operation& operation) {
  const Shape& dy = operation.operands[0].shape;
  const Shape& x = operation.operands[1].shape;
  if (operation.integer("group") < 1) operand_error(operation, "group is not positive");
  const Shape kernel = spatial_values(operation, "kernel_size", num_spatial(operation));
  return make_convolution(operation, x, with_channels(dy[1], x[1] / operation.integer("group"), kernel));
}

/// The first step of each inference: from here on both operands have n or out, channels, and the spatial dimensions.
template <std::size_t spatial>
void check_ranks(const Operation& operation, const char* weight_channels) {
  const Shape& first = operation.operands[0].shape;
  const Shape& second = operation.operands[1].shape;
  if (first.size() == spatial + 2 && second.size() == spatial + 2) return;
  const std::string dimensions = fmt::format("{}", fmt::join(spatial_names(spatial), ", "));
  const std::string& name = operation.type->signature.operands[1];
  operand_error(operation, fmt::format("needs {} [n, c, {}] and {} {}, found {} and {}",
                                       operation.type->signature.operands[0], dimensions, name,
                                       name == "weight" ? fmt::format("[{}, k{}]", weight_channels,
                                                                      fmt::join(spatial_names(spatial), ", k"))
                                                        : fmt::format("[n, c, {}]", dimensions),
                                       to_string(first), to_string(second)));
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

/// The output points of some images, for the patches of one group.
struct Chunk {
  std::int64_t first = 0;  // image
  std::int64_t images = 0;
  std::int64_t group = 0;
  std::int64_t points = 0;  // images * points of an image
};

/// Calls body(chunk) so that a chunk's patches stay small.
template <class Body>
void for_each_chunk(const ChannelLoops& loops, std::int64_t rows, std::int64_t points, Body body) {
  constexpr std::int64_t kMostElements = 1 << 20;
  const std::int64_t most = std::max<std::int64_t>(1, kMostElements / std::max<std::int64_t>(1, rows * points));
  for (std::int64_t group = 0; group < loops.groups; ++group) {
    for (std::int64_t first = 0; first < loops.n; first += most) {
      const std::int64_t images = std::min(most, loops.n - first);
      body(Chunk{first, images, group, images * points});
    }
  }
}

/// Calls body(row of the patches, point of the chunk, offset in x, count, step in x) for all runs of a chunk.
template <class Body>
void for_each_patch(const ChannelLoops& loops, const Convolution& conv, const Chunk& chunk, const Volume& x,
                    const Volume& y, Body body) {
  const std::int64_t taps = conv.taps();
  const ThreeWindows windows = as_three(conv.windows);
  for (std::int64_t image = 0; image < chunk.images; ++image) {
    for (std::int64_t i = 0; i < loops.in; ++i) {
      const std::int64_t x_channel = ((chunk.first + image) * loops.groups + chunk.group) * loops.in + i;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for_each_run(windows, tap, x, y, [&](std::int64_t in, std::int64_t out, std::int64_t count, std::int64_t step) {
          body(i * taps + tap, image * y.size() + out, x_channel * x.size() + in, count, step);
        });
      }
    }
  }
}

/// Calls body(offset in [out, points], offset in y, count) for the channels of a chunk.
template <class Body>
void for_each_channel(const ChannelLoops& loops, const Chunk& chunk, const Volume& y, Body body) {
  for (std::int64_t o = 0; o < loops.out; ++o) {
    for (std::int64_t image = 0; image < chunk.images; ++image) {
      const std::int64_t channel = ((chunk.first + image) * loops.groups + chunk.group) * loops.out + o;
      body(o * chunk.points + image * y.size(), channel * y.size(), y.size());
    }
  }
}

/// dy of a chunk as [out, points].
std::vector<double> pack_channels(const ChannelLoops& loops, const Chunk& chunk, const Volume& y, const double* dy) {
  std::vector<double> packed(static_cast<std::size_t>(loops.out * chunk.points));
  for_each_channel(loops, chunk, y, [&](std::int64_t at, std::int64_t in_y, std::int64_t count) {
    std::copy_n(dy + in_y, count, packed.begin() + at);
  });
  return packed;
}

/// The volume where y is the result.
Volume result_volume(const KernelCall& call) {
  const std::vector<std::string> names = spatial_names(num_spatial(call.operation));
  Volume volume;
  for (std::size_t d = 0; d < names.size(); ++d) {
    const Box box = call.box(names[d]);
    volume.ranges[3 - names.size() + d] = {box.begin, box.end};
  }
  return volume;
}

/// The volume where the gradient of x is the result.
Volume backward_volume(const KernelCall& call, const SpatialWindows& windows) {
  const std::vector<std::string> names = spatial_names(windows.size());
  Volume volume;
  for (std::size_t d = 0; d < names.size(); ++d) {
    volume.ranges[3 - names.size() + d] = backward_range(call, windows[d], names[d], call.results[0].shape[2 + d]);
  }
  return volume;
}

template <std::size_t spatial>
std::vector<TensorType> infer_convolution(const Operation& operation) {
  check_ranks<spatial>(operation, "out, c");
  return {{of_forward(operation).y, operation.operands[0].dtype}};
}

struct ForwardWalks {
  TensorWalk x, weight, y;
};

/// Point by point of y: of `point_kind` are samples and positions, of `in_kind` the channels of x within a group.
ForwardWalks forward_walks(RuleBuilder& builder, const Convolution& conv, FactorKind point_kind, FactorKind in_kind) {
  const ChannelWalks walks(builder, conv, point_kind, in_kind, FactorKind::kPassThrough);
  const std::vector<std::string> names = spatial_names(conv.windows.size());
  ForwardWalks all;
  all.x = {walks.n, walks.x_channels};
  all.weight = {walks.y_channels, walks.weight_in};
  all.y = {walks.n, walks.y_channels};
  for (std::size_t d = 0; d < names.size(); ++d) {
    const ForwardWalk walk = forward_walk(builder, conv.windows[d], names[d]);
    builder.set_kind(walk.output, point_kind);
    all.x.push_back(walk.input);
    all.weight.push_back(walk.offset);
    all.y.push_back(walk.output);
  }
  return all;
}

ShardingRule convolution_rule(const Operation& operation) {
  RuleBuilder builder;
  ForwardWalks walks = forward_walks(builder, of_forward(operation), FactorKind::kPassThrough, FactorKind::kReduction);
  builder.operand(std::move(walks.x));
  builder.operand(std::move(walks.weight));
  builder.result(std::move(walks.y));
  return builder.build();
}

void convolution_kernel(const KernelCall& call) {
  const Convolution conv = of_forward(call.operation);
  const Volume x = Volume::of(call.operands[0]);
  const Volume y = result_volume(call);
  const ChannelLoops loops(call);
  const std::int64_t rows = loops.in * conv.taps();
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
    for_each_channel(loops, chunk, y, [&](std::int64_t at, std::int64_t in_y, std::int64_t count) {
      std::copy_n(product.begin() + at, count, call.results[0].data + in_y);
    });
  });
}

/// Serves ConvNDTranspose, too.
template <std::size_t spatial>
std::vector<TensorType> infer_backprop_input(const Operation& operation) {
  check_ranks<spatial>(operation, "c, out");
  const Convolution conv = of_backprop_input(operation);
  check_gradient_shape(operation, conv);
  return {{conv.x, operation.operands[0].dtype}};
}

ShardingRule backprop_input_rule(const Operation& operation) {
  const Convolution conv = of_backprop_input(operation);
  RuleBuilder builder;
  const ChannelWalks walks(builder, conv, FactorKind::kPassThrough, FactorKind::kPassThrough, FactorKind::kReduction);
  const std::vector<std::string> names = spatial_names(conv.windows.size());
  TensorWalk dy = {walks.n, walks.y_channels};
  TensorWalk weight = {walks.y_channels, walks.weight_in};
  TensorWalk dx = {walks.n, walks.x_channels};
  for (std::size_t d = 0; d < names.size(); ++d) {
    const BackwardWalk walk = backward_walk(builder, conv.windows[d], names[d], false);
    dy.push_back(walk.output);
    weight.push_back(whole());
    dx.push_back(walk.input);
  }
  builder.operand(std::move(dy));
  builder.operand(std::move(weight));
  builder.result(std::move(dx));
  return builder.build();
}

void backprop_input_kernel(const KernelCall& call) {
  const Convolution conv = of_backprop_input(call.operation);
  const Volume y = Volume::of(call.operands[0]);
  const Volume x = backward_volume(call, conv.windows);
  const ChannelLoops loops(call);
  const std::int64_t rows = loops.in * conv.taps();
  for_each_chunk(loops, rows, y.size(), [&](const Chunk& chunk) {
    const double* weight = call.operands[1].data + chunk.group * loops.out * rows;
    std::vector<double> transposed(static_cast<std::size_t>(rows * loops.out));
    for (std::int64_t o = 0; o < loops.out; ++o) {
      for (std::int64_t row = 0; row < rows; ++row) {
        transposed[static_cast<std::size_t>(row * loops.out + o)] = weight[o * rows + row];
      }
    }
    const std::vector<double> dy = pack_channels(loops, chunk, y, call.operands[0].data);
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
double backprop_input_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  const Convolution conv = of_backprop_input(operation);
  double products = 2 * static_cast<double>(conv.weight[1]);
  for (const std::int64_t size : conv.y) products *= static_cast<double>(size);
  double points = 1;
  double all_points = 1;
  for (std::size_t f = 0; f < extents.size(); ++f) {
    points *= static_cast<double>(extents[f]);
    all_points *= static_cast<double>(operation.rule.factors[f].size);
  }
  return products * static_cast<double>(conv.taps()) * (points / all_points);
}

template <std::size_t spatial>
std::vector<TensorType> infer_backprop_filter(const Operation& operation) {
  check_ranks<spatial>(operation, "");
  const Convolution conv = of_backprop_filter(operation);
  check_gradient_shape(operation, conv);
  return {{conv.weight, operation.operands[0].dtype}};
}

ShardingRule backprop_filter_rule(const Operation& operation) {
  RuleBuilder builder;
  ForwardWalks walks =
      forward_walks(builder, of_backprop_filter(operation), FactorKind::kReduction, FactorKind::kPassThrough);
  builder.operand(std::move(walks.y));
  builder.operand(std::move(walks.x));
  builder.result(std::move(walks.weight));
  return builder.build();
}

void backprop_filter_kernel(const KernelCall& call) {
  const Convolution conv = of_backprop_filter(call.operation);
  const Volume x = Volume::of(call.operands[1]);
  const Volume y = Volume::of(call.operands[0]);
  const ChannelLoops loops(call);
  const std::int64_t rows = loops.in * conv.taps();
  for_each_chunk(loops, rows, y.size(), [&](const Chunk& chunk) {
    std::vector<double> patches(static_cast<std::size_t>(chunk.points * rows), 0.0);  // [points, rows]
    for_each_patch(loops, conv, chunk, x, y,
                   [&](std::int64_t row, std::int64_t point, std::int64_t in, std::int64_t count, std::int64_t step) {
                     double* to = patches.data() + point * rows + row;
                     const double* from = call.operands[1].data + in;
                     for (std::int64_t j = 0; j < count; ++j) to[j * rows] = from[j * step];
                   });
    const std::vector<double> dy = pack_channels(loops, chunk, y, call.operands[0].data);
    multiply_add(loops.out, rows, chunk.points, dy.data(), patches.data(),
                 call.results[0].data + chunk.group * loops.out * rows);
  });
}

/// The operators of a family: "Conv2D" for Conv2D and Conv2DTranspose.
std::string base_name(const Operation& operation) { return fmt::format("Conv{}D", num_spatial(operation)); }

Gradients convolution_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const std::string base = base_name(request.operation);
  Attributes attributes = request.operation.attributes;
  if (request.needed[0]) {
    attributes["input_size"] = Convolution::spatial(request.operation.operands[0].shape);
    gradients[0] = add_one(builder, base + "BackpropInput", {dy, request.operands[1]}, attributes);
    attributes.erase("input_size");
  }
  if (request.needed[1]) {
    attributes["kernel_size"] = Convolution::spatial(request.operation.operands[1].shape);
    gradients[1] = add_one(builder, base + "BackpropFilter", {dy, request.operands[0]}, attributes);
  }
  return gradients;
}

/// y is what the input of a convolution would be, x what its result: so its operators with the roles exchanged.
Gradients transposed_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const std::string base = base_name(request.operation);
  Attributes attributes = request.operation.attributes;
  attributes.erase("output_padding");
  if (request.needed[0]) gradients[0] = add_one(builder, base, {dy, request.operands[1]}, attributes);
  if (request.needed[1]) {
    attributes["kernel_size"] = Convolution::spatial(request.operation.operands[1].shape);
    gradients[1] = add_one(builder, base + "BackpropFilter", {request.operands[0], dy}, attributes);
  }
  return gradients;
}

std::vector<AttributeSpec> convolution_attributes(std::size_t spatial) {
  return {pad_mode_attribute(), pad_attribute(spatial), spatial_attribute("stride", spatial),
          spatial_attribute("dilation", spatial), integer("group", 1, "channels are convolved within groups")};
}

/// The same with the sizes of an input or kernel that no operand shows.
std::vector<AttributeSpec> gradient_attributes(std::size_t spatial, const char* size) {
  std::vector<AttributeSpec> attributes = convolution_attributes(spatial);
  attributes.push_back(list(size, std::nullopt, "of each spatial dimension"));
  return attributes;
}

std::vector<AttributeSpec> transposed_attributes(std::size_t spatial) {
  std::vector<AttributeSpec> attributes = convolution_attributes(spatial);
  attributes.push_back(list("output_padding", std::vector<std::int64_t>{0},
                            "more positions behind those that windows reach; less than stride"));
  return attributes;
}

/// "h w" with each name put into `pattern`, where @ stands for it.
std::string each(const std::vector<std::string>& names, const std::string& pattern, const char* between = " ") {
  std::vector<std::string> texts;
  for (const std::string& name : names) {
    std::string text;
    for (const char c : pattern) text += c == '@' ? name : std::string(1, c);
    texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, between));
}

template <std::size_t spatial>
void add_convolutions(std::vector<OperatorType>& table) {
  const std::vector<std::string> names = spatial_names(spatial);
  const std::string base = fmt::format("Conv{}D", spatial);
  const std::string windows = each(names, "s*@+k@"), taps = each(names, "k@"), outputs = each(names, "@");
  const std::string whole_taps = each(names, "k@", ", ") + ": whole";
  const std::string backward =
      fmt::format("n (g o) {}, (g o) i {} -> n (g i) {}; o: sum; {}, {}: whole", each(names, "@+k@"), each(names, "1"),
                  each(names, "(@ t@)"), each(names, "k@", ", "), each(names, "t@", ", "));
  const std::string halo =
      fmt::format("{} cut needs a halo, no wider than the neighbour's piece", each(names, "@", " or "));
  table.push_back(
      {.name = base,
       .signature = "x, weight -> y",
       .attributes = convolution_attributes(spatial),
       .infer = infer_convolution<spatial>,
       .rule_text = fmt::format("n (g i) {}, (g o) i {} -> n (g o) {}; i: sum; {}", windows, taps, outputs, whole_taps),
       .rule = convolution_rule,
       .linear = {{"x"}, {"weight"}},
       .kernel = convolution_kernel,
       .gradient = convolution_gradient,
       .work = WorkKind::kContraction,
       .flops_per_point = 2,
       .notes = fmt::format("strategy  ((n, i, {}), (o, i, {})); {}", each(names, "@", ", "), each(names, "1", ", "),
                            halo)});
  table.push_back({.name = base + "BackpropInput",
                   .signature = "dy, weight -> dx",
                   .attributes = gradient_attributes(spatial, "input_size"),
                   .infer = infer_backprop_input<spatial>,
                   .rule_text = backward,
                   .rule = backprop_input_rule,
                   .linear = {{"dy"}, {"weight"}},
                   .kernel = backprop_input_kernel,
                   .work = WorkKind::kContraction,
                   .flops = backprop_input_flops,
                   .is_internal = true});
  table.push_back({.name = base + "BackpropFilter",
                   .signature = "dy, x -> dweight",
                   .attributes = gradient_attributes(spatial, "kernel_size"),
                   .infer = infer_backprop_filter<spatial>,
                   .rule_text = fmt::format("n (g o) {}, n (g i) {} -> (g o) i {}; n, {}: sum; {}", outputs, windows,
                                            taps, each(names, "@", ", "), whole_taps),
                   .rule = backprop_filter_rule,
                   .linear = {{"dy"}, {"x"}},
                   .kernel = backprop_filter_kernel,
                   .work = WorkKind::kContraction,
                   .flops_per_point = 2,
                   .is_internal = true});
  table.push_back({.name = base + "Transpose",
                   .signature = "x, weight -> y",
                   .attributes = transposed_attributes(spatial),
                   .infer = infer_backprop_input<spatial>,
                   .rule_text = backward,
                   .rule = backprop_input_rule,
                   .linear = {{"x"}, {"weight"}},
                   .kernel = backprop_input_kernel,
                   .gradient = transposed_gradient,
                   .work = WorkKind::kContraction,
                   .flops = backprop_input_flops,
                   .flops_text = "2 for each weight at each position of x",
                   .notes = fmt::format("strategy  ((n, o, {}), (o, i, {})), where o are the channels of x; {},\n"
                                        "          and y must be stride times as large as what is cut",
                                        each(names, "@", ", "), each(names, "1", ", "), halo)});
}

}  // namespace

std::vector<OperatorType> convolution_operators() {
  std::vector<OperatorType> table;
  add_convolutions<1>(table);
  add_convolutions<2>(table);
  add_convolutions<3>(table);
  return table;
}

}  // namespace shardplan
