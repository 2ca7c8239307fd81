// y = (M1 x M2 x ...) x: a map of each dimension, applied one after the other; the gradient applies the transposed
// maps. So an operator is two functions: which dimensions it maps, to what size, and the sources of one position.
#include "operators/families/resampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/integer.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/sliding_window.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

/// How the positions of y correspond to those of x, and so how both can be sharded.
enum class Fit {
  kAny,     // neither can be sharded
  kBins,    // position i is the mean of the input / output positions from i * (input / output) on
  kCopies,  // position i occurs output / input times
  kWindow,  // position i reads a window; x is sharded with a halo
};

/// One dimension that is mapped.
struct Mapped {
  std::size_t dimension = 0;
  std::int64_t input = 1;
  std::int64_t output = 1;
  Fit fit = Fit::kAny;
  SlidingWindow window = {};  // of kWindow
};
/// Positions of x and their weights.
using Sources = std::vector<std::pair<std::int64_t, double>>;

/// What distinguishes these operators; `sources` is not asked about bins and copies.
using DimensionsOf = std::vector<Mapped> (*)(const Operation&, const Shape& x);
using SourcesOf = Sources (*)(const Operation&, const Mapped&, std::int64_t i);

/// The shape of x: of the first operand or, in gradients, an attribute.
const Shape& input_shape(const Operation& operation) {
  return operation.attributes.contains("input_shape") ? operation.list("input_shape")
                                                      : operation.operands[0].shape.items();
}

/// Positions within a bin, and copies of one.
std::string bin_factor(std::size_t dimension) { return fmt::format("k{}", position_name(dimension)); }

// ---- both directions

template <DimensionsOf dimensions>
std::vector<TensorType> infer_resampled(const Operation& operation) {
  TensorType result = operation.operands[0];
  for (const Mapped& mapped : dimensions(operation, result.shape)) result.shape[mapped.dimension] = mapped.output;
  return {result};
}

template <DimensionsOf dimensions>
std::vector<TensorType> infer_gradient(const Operation& operation) {
  return {{input_shape(operation), operation.operands[0].dtype}};
}

/// x and y, in the order of the direction.
template <DimensionsOf dimensions>
ShardingRule resampled_rule(const Operation& operation) {
  const Shape& shape = input_shape(operation);
  const bool is_gradient = &shape != &operation.operands[0].shape.items();
  const std::vector<Mapped> all = dimensions(operation, shape);
  RuleBuilder builder;
  TensorWalk x;
  TensorWalk y;
  // One dimension has a factor more than the other; the positions that it counts are added up where it is an operand's.
  const auto add_bins = [&](TensorWalk& fine, TensorWalk& coarse, std::size_t d, std::int64_t count, std::int64_t size,
                            bool is_operand) {
    const DimensionWalk bins = builder.add(position_name(d), count);
    const FactorKind within = is_operand ? FactorKind::kReduction : FactorKind::kPassThrough;
    fine.push_back(product(bins, builder.add(bin_factor(d), size, within)));
    coarse.push_back(bins);
  };
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto mapped = std::ranges::find(all, d, &Mapped::dimension);
    if (mapped == all.end()) {
      const DimensionWalk walk = shape[d] == 1 ? whole() : builder.add(position_name(d), shape[d]);
      x.push_back(walk);
      y.push_back(walk);
    } else if (mapped->fit == Fit::kBins) {
      add_bins(x, y, d, mapped->output, mapped->input / mapped->output, !is_gradient);
    } else if (mapped->fit == Fit::kCopies) {
      add_bins(y, x, d, mapped->input, mapped->output / mapped->input, is_gradient);
    } else if (mapped->fit == Fit::kAny) {
      x.push_back(whole());
      y.push_back(whole());
    } else if (is_gradient) {
      BackwardWalk walk = backward_walk(builder, mapped->window, position_name(d), false);
      x.push_back(std::move(walk.input));
      y.push_back(std::move(walk.output));
    } else {
      ForwardWalk walk = forward_walk(builder, mapped->window, position_name(d));
      x.push_back(std::move(walk.input));
      y.push_back(std::move(walk.output));
    }
  }
  builder.operand(is_gradient ? y : x);
  builder.result(is_gradient ? x : y);
  return builder.build();
}

/// Calls body(position of x, position of y, weight), both within the local piece, for the sources of one dimension.
template <SourcesOf sources, class Body>
void for_each_source(const KernelCall& call, const Mapped& mapped, bool is_gradient, Body body) {
  const std::size_t d = mapped.dimension;
  const std::int64_t operand_size = call.operands[0].shape[d];
  const std::int64_t result_size = call.results[0].shape[d];
  if (mapped.fit == Fit::kBins || mapped.fit == Fit::kCopies) {
    const bool has_bins = mapped.fit == Fit::kBins;
    const std::int64_t bin = call.box(bin_factor(d)).size();
    const std::int64_t count = call.box(position_name(d)).size();
    const double share = has_bins ? static_cast<double>(mapped.output) / static_cast<double>(mapped.input) : 1.0;
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < bin; ++j) {
        body(has_bins ? i * bin + j : i, has_bins ? i : i * bin + j, share);
      }
    }
    return;
  }
  Interval x = {0, mapped.input};
  Interval y = {0, mapped.output};
  if (mapped.fit == Fit::kWindow) {
    const std::int64_t begin = call.operands[0].begin[d];
    const Interval operand = {begin, begin + operand_size};
    x = is_gradient ? backward_range(call, mapped.window, position_name(d), result_size) : operand;
    y = is_gradient ? operand : Interval{call.box(position_name(d)).begin, call.box(position_name(d)).end};
  }
  for (std::int64_t i = y.begin; i < y.end; ++i) {
    for (const auto& [source, weight] : sources(call.operation, mapped, i)) {
      if (source >= x.begin && source < x.end) body(source - x.begin, i - y.begin, weight);
    }
  }
}

/// Maps one dimension after the other, back from y to x in gradients.
template <DimensionsOf dimensions, SourcesOf sources>
void resample(const KernelCall& call) {
  const Shape& whole_shape = input_shape(call.operation);
  const bool is_gradient = &whole_shape != &call.operation.operands[0].shape.items();
  Shape shape = call.operands[0].shape;
  std::vector<double> values(call.operands[0].data, call.operands[0].data + num_elements(shape));
  for (const Mapped& mapped : dimensions(call.operation, whole_shape)) {
    const AroundAxis from(shape, mapped.dimension);
    shape[mapped.dimension] = call.results[0].shape[mapped.dimension];
    const std::int64_t to_size = shape[mapped.dimension];
    std::vector<double> mapped_values(static_cast<std::size_t>(num_elements(shape)), 0.0);
    for_each_source<sources>(call, mapped, is_gradient, [&](std::int64_t x, std::int64_t y, double weight) {
      const std::int64_t read = is_gradient ? y : x;
      const std::int64_t written = is_gradient ? x : y;
      for (std::int64_t o = 0; o < from.outer; ++o) {
        const double* in = values.data() + (o * from.size + read) * from.inner;
        double* out = mapped_values.data() + (o * to_size + written) * from.inner;
        for (std::int64_t k = 0; k < from.inner; ++k) out[k] += weight * in[k];
      }
    });
    values = std::move(mapped_values);
  }
  std::ranges::copy(values, call.results[0].data);
}

Gradients resampled_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    Attributes attributes = request.operation.attributes;
    attributes["input_shape"] = request.operation.operands[0].shape;
    return add_one(builder, fmt::format("{}Grad", request.operation.type->name), {dy}, attributes);
  });
}

/// The operator and its gradient.
template <DimensionsOf dimensions, SourcesOf sources>
void add_resampling(std::vector<OperatorType>& table, std::string name, std::vector<AttributeSpec> attributes,
                    const std::string& rule_text, const std::string& gradient_rule_text, std::string notes) {
  std::vector<AttributeSpec> of_gradient = attributes;
  of_gradient.push_back(list("input_shape", std::nullopt, "of x"));
  table.push_back({.name = name,
                   .signature = "x -> y",
                   .attributes = std::move(attributes),
                   .infer = infer_resampled<dimensions>,
                   .rule_text = rule_text,
                   .rule = resampled_rule<dimensions>,
                   .linear = {{"x"}},
                   .kernel = resample<dimensions, sources>,
                   .gradient = resampled_gradient,
                   .notes = std::move(notes)});
  table.push_back({.name = fmt::format("{}Grad", name),
                   .signature = "dy -> dx",
                   .attributes = std::move(of_gradient),
                   .infer = infer_gradient<dimensions>,
                   .rule_text = gradient_rule_text,
                   .rule = resampled_rule<dimensions>,
                   .linear = {{"dy"}},
                   .kernel = resample<dimensions, sources>,
                   .is_internal = true});
}

// ---- Pad

std::vector<Mapped> padded_dimensions(const Operation& operation, const Shape& x) {
  const std::vector<std::int64_t>& paddings = operation.list("paddings");
  const std::string& mode = operation.text("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge") {
    operand_error(operation, fmt::format("mode is {}; expected constant, reflect or edge", mode));
  }
  if (paddings.size() != 2 * x.size()) {
    operand_error(operation,
                  fmt::format("paddings {} has {} numbers; expected before and after of each dimension of {}",
                              to_string(Attribute(paddings)), paddings.size(), to_string(x)));
  }
  std::vector<Mapped> all;
  for (std::size_t d = 0; d < x.size(); ++d) {
    const std::int64_t before = paddings[2 * d];
    const std::int64_t after = paddings[2 * d + 1];
    const std::int64_t most = mode == "reflect" ? x[d] - 1 : std::int64_t{1} << 40;
    if (before < 0 || after < 0 || before > most || after > most) {
      operand_error(operation,
                    fmt::format("paddings of dimension {} are {} and {}; expected 0 to {}", d, before, after, most));
    }
    if (before + after > 0) all.push_back({d, x[d], x[d] + before + after});
  }
  return all;
}

Sources padded_sources(const Operation& operation, const Mapped& mapped, std::int64_t i) {
  const std::string& mode = operation.text("mode");
  std::int64_t j = i - operation.list("paddings")[2 * mapped.dimension];
  if (mode == "edge") j = std::clamp<std::int64_t>(j, 0, mapped.input - 1);
  if (mode == "reflect" && j < 0) j = -j;
  if (mode == "reflect" && j >= mapped.input) j = 2 * (mapped.input - 1) - j;
  if (j < 0 || j >= mapped.input) return {};
  return {{j, 1}};
}

/// A constant other than 0 is no sum of x.
ShardingRule pad_rule(const Operation& operation) {
  ShardingRule rule = resampled_rule<padded_dimensions>(operation);
  if (operation.text("mode") != "constant" || operation.number("value") == 0) rule.linear = {{0}};
  return rule;
}

void pad_kernel(const KernelCall& call) {
  resample<padded_dimensions, padded_sources>(call);
  const double value = call.operation.number("value");
  if (value == 0) return;
  for (const Mapped& mapped : padded_dimensions(call.operation, call.operation.operands[0].shape)) {
    const AroundAxis around(call.results[0].shape, mapped.dimension);
    for (std::int64_t i = 0; i < around.size; ++i) {
      if (!padded_sources(call.operation, mapped, i).empty()) continue;
      for (std::int64_t o = 0; o < around.outer; ++o) {
        std::fill_n(call.results[0].data + (o * around.size + i) * around.inner, around.inner, value);
      }
    }
  }
}

// ---- Roll

std::vector<Mapped> rolled_dimensions(const Operation& operation, const Shape& x) {
  const std::vector<std::int64_t>& axes = operation.list("axis");
  if (axes.size() != operation.list("shifts").size() || axes.empty()) {
    operand_error(operation, "expected as many shifts as axes, at least one");
  }
  if (normal_axes(operation, axes, x.size()).size() != axes.size()) operand_error(operation, "an axis is given twice");
  std::vector<Mapped> all;
  for (const std::int64_t axis : axes) {
    const std::size_t d = normal_axis(operation, axis, x.size());
    all.push_back({d, x[d], x[d]});
  }
  return all;
}

Sources rolled_sources(const Operation& operation, const Mapped& mapped, std::int64_t i) {
  const std::vector<std::int64_t>& axes = operation.list("axis");
  const std::size_t rank = input_shape(operation).size();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (normal_axis(operation, axes[a], rank) != mapped.dimension) continue;
    const std::int64_t shift = operation.list("shifts")[a] % mapped.input;
    return {{(i - shift + mapped.input) % mapped.input, 1}};
  }
  return {};
}

// ---- Resize

std::vector<Mapped> resized_dimensions(const Operation& operation, const Shape& x) {
  const std::vector<std::int64_t>& size = operation.list("size");
  const std::string& mode = operation.text("mode");
  if (x.size() != 4) operand_error(operation, fmt::format("needs an input [n, c, h, w], found {}", to_string(x)));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) operand_error(operation, "size: expected height and width");
  if (mode != "nearest" && mode != "bilinear") {
    operand_error(operation, fmt::format("mode is {}; expected nearest or bilinear", mode));
  }
  if (operation.flag("align_corners") && operation.flag("half_pixel_centers")) {
    operand_error(operation, "align_corners and half_pixel_centers exclude each other");
  }
  std::vector<Mapped> all = {{2, x[2], size[0]}, {3, x[3], size[1]}};
  for (Mapped& mapped : all) {
    const bool has_copies = mode == "nearest" && !operation.flag("align_corners") && mapped.output % mapped.input == 0;
    if (has_copies) mapped.fit = Fit::kCopies;
  }
  return all;
}

Sources resized_sources(const Operation& operation, const Mapped& mapped, std::int64_t i) {
  const auto input = static_cast<double>(mapped.input);
  const auto output = static_cast<double>(mapped.output);
  const bool is_aligned = operation.flag("align_corners") && mapped.output > 1;
  const double scale = is_aligned ? (input - 1) / (output - 1) : input / output;
  const bool by_centres = operation.flag("half_pixel_centers");
  if (operation.text("mode") == "nearest") {
    const double at = (static_cast<double>(i) + (by_centres ? 0.5 : 0)) * scale;
    const double nearest = is_aligned ? std::round(at) : std::floor(at);
    return {{std::clamp<std::int64_t>(static_cast<std::int64_t>(nearest), 0, mapped.input - 1), 1}};
  }
  const double at = by_centres ? (static_cast<double>(i) + 0.5) * scale - 0.5 : static_cast<double>(i) * scale;
  const double clamped = std::clamp(at, 0.0, input - 1);
  const auto low = static_cast<std::int64_t>(std::floor(clamped));
  const double part = clamped - static_cast<double>(low);
  if (part == 0) return {{low, 1}};
  return {{low, 1 - part}, {low + 1, part}};
}

// ---- pooling

/// An attribute of an operator on [n, c, ...]: one number for each spatial dimension, or one for all.
std::int64_t spatial_value(const Operation& operation, const char* attribute, std::size_t dimension, std::size_t rank) {
  const std::vector<std::int64_t>& values = operation.list(attribute);
  if (values.size() != 1 && values.size() != rank - 2) {
    operand_error(operation, fmt::format("{} has {} numbers; expected 1 or {}", attribute, values.size(), rank - 2));
  }
  return values.size() == 1 ? values[0] : values[dimension - 2];
}

void check_rank(const Operation& operation, const Shape& x, std::size_t rank) {
  if (x.size() == rank) return;
  operand_error(operation, fmt::format("needs an input of {} dimensions, [n, c, ...], found {}", rank, to_string(x)));
}

template <std::size_t rank>
std::vector<Mapped> adaptive_dimensions(const Operation& operation, const Shape& x) {
  check_rank(operation, x, rank);
  std::vector<Mapped> all;
  for (std::size_t d = 2; d < rank; ++d) {
    const std::int64_t output = spatial_value(operation, "output_size", d, rank);
    if (output < 1) operand_error(operation, fmt::format("output_size is {}; expected at least 1", output));
    all.push_back({d, x[d], output, x[d] % output == 0 ? Fit::kBins : Fit::kAny});
  }
  return all;
}

/// Bins that may overlap: from floor(i input / output) to ceil((i + 1) input / output).
Sources adaptive_sources(const Operation&, const Mapped& mapped, std::int64_t i) {
  const std::int64_t begin = i * mapped.input / mapped.output;
  const std::int64_t end = ((i + 1) * mapped.input + mapped.output - 1) / mapped.output;
  Sources sources;
  for (std::int64_t j = begin; j < end; ++j) sources.emplace_back(j, 1 / static_cast<double>(end - begin));
  return sources;
}

template <std::size_t rank>
std::vector<Mapped> pooled_dimensions(const Operation& operation, const Shape& x) {
  check_rank(operation, x, rank);
  std::vector<Mapped> all;
  for (std::size_t d = 2; d < rank; ++d) {
    const std::int64_t kernel = spatial_value(operation, "kernel_size", d, rank);
    const std::int64_t stride = spatial_value(operation, "strides", d, rank);
    const std::int64_t pad = spatial_value(operation, "pad", d, rank);
    if (kernel < 1 || stride < 1 || pad < 0 || std::max({kernel, stride, x[d]}) > kLargestWindow || pad >= kernel ||
        kernel > x[d] + 2 * pad) {
      operand_error(operation, fmt::format("kernel_size {}, strides {} and pad {} do not fit the size {}", kernel,
                                           stride, pad, x[d]));
    }
    const std::int64_t output = (x[d] + 2 * pad - kernel) / stride + 1;
    const bool has_bins = kernel == stride && pad == 0 && x[d] % kernel == 0;
    all.push_back({d, x[d], output, has_bins ? Fit::kBins : Fit::kWindow,
                   SlidingWindow{x[d], output, kernel, stride, 1, pad, pad}});
  }
  return all;
}

Sources pooled_sources(const Operation& operation, const Mapped& mapped, std::int64_t i) {
  const std::size_t rank = input_shape(operation).size();
  const std::int64_t first = i * spatial_value(operation, "strides", mapped.dimension, rank) -
                             spatial_value(operation, "pad", mapped.dimension, rank);
  const std::int64_t begin = std::max<std::int64_t>(0, first);
  const std::int64_t end =
      std::min(mapped.input, first + spatial_value(operation, "kernel_size", mapped.dimension, rank));
  Sources sources;
  for (std::int64_t j = begin; j < end; ++j) sources.emplace_back(j, 1 / static_cast<double>(end - begin));
  return sources;
}

std::vector<AttributeSpec> window_attributes() {
  return {list("kernel_size", std::nullopt, "of the window, for each dimension or one for all"),
          list("strides", std::vector<std::int64_t>{1}, "between windows"),
          list("pad", std::vector<std::int64_t>{0}, "on both sides; does not count in means")};
}

}  // namespace

std::vector<OperatorType> resampling_operators() {
  std::vector<OperatorType> table;
  add_resampling<padded_dimensions, padded_sources>(
      table, "Pad",
      {list("paddings", std::nullopt, "before and after of the first dimension, of the second, ..."),
       text("mode", "constant", "constant, reflect or edge"), number("value", 0, "of the constant")},
      "... k -> ... l; k, l: whole where padded", "... l -> ... k; k, l: whole where padded", "");
  table[0].linear = {};
  table[0].rule = pad_rule;
  table[0].kernel = pad_kernel;
  add_resampling<rolled_dimensions, rolled_sources>(
      table, "Roll",
      {list("shifts", std::nullopt, "by how many positions, for each axis"),
       list("axis", std::nullopt, "rolled dimensions")},
      "... k -> ... k; k: whole where rolled", "... k -> ... k; k: whole where rolled", "");
  table[2].monotone = {{"x"}};
  table[2].moves_elements = true;
  add_resampling<resized_dimensions, resized_sources>(
      table, "Resize",
      {list("size", std::nullopt, "height, width"), text("mode", "nearest", "nearest or bilinear"),
       flag("align_corners", false, "corners on corners"), flag("half_pixel_centers", false, "by the pixels' centres")},
      "n c h w -> n c (h kh) (w kw)", "n c (h kh) (w kw) -> n c h w; kh, kw: sum",
      "strategy  nearest in whole multiples cuts height and width, else they stay whole");
  const std::string notes =
      "strategy  where bins are equal and do not overlap they are cut, and a bin too: partial sums";
  const std::string pool_notes = notes + ";\n          windows that overlap or are padded are cut with a halo";
  const auto adaptive = [] {
    return std::vector<AttributeSpec>{list("output_size", std::nullopt, "for each dimension or one for all")};
  };
  add_resampling<adaptive_dimensions<3>, adaptive_sources>(table, "AdaptiveAvgPool1D", adaptive(),
                                                           "n c (l k) -> n c l; k: sum", "n c l -> n c (l k)", notes);
  add_resampling<adaptive_dimensions<4>, adaptive_sources>(table, "AdaptiveAvgPool2D", adaptive(),
                                                           "n c (h kh) (w kw) -> n c h w; kh, kw: sum",
                                                           "n c h w -> n c (h kh) (w kw)", notes);
  add_resampling<adaptive_dimensions<5>, adaptive_sources>(table, "AdaptiveAvgPool3D", adaptive(),
                                                           "n c (d kd) (h kh) (w kw) -> n c d h w; kd, kh, kw: sum",
                                                           "n c d h w -> n c (d kd) (h kh) (w kw)", notes);
  add_resampling<pooled_dimensions<3>, pooled_sources>(table, "AvgPool1D", window_attributes(),
                                                       "n c (l k) -> n c l; k: sum", "n c l -> n c (l k)", pool_notes);
  add_resampling<pooled_dimensions<5>, pooled_sources>(table, "AvgPool3D", window_attributes(),
                                                       "n c (d kd) (h kh) (w kw) -> n c d h w; kd, kh, kw: sum",
                                                       "n c d h w -> n c (d kd) (h kh) (w kw)", pool_notes);
  return table;
}

}  // namespace shardplan
