#include "operators/building/sliding_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operators/building/attributes.h"

namespace shardplan {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

DimensionWalk windowed(const DimensionWalk& output, const DimensionWalk& offset, Window window) {
  window.output = output.factors[0];
  window.offset = offset.factors[0];
  return {{}, window};
}

constexpr const char* kTooLarge = "a window or input is too large";

/// The positions from the first to the last that one output reads.
std::int64_t reach_of(const SlidingWindow& window) { return window.dilation * (window.kernel - 1) + 1; }

/// The attributes, checked.
struct Sliding {
  std::vector<std::int64_t> strides, dilations, pad;
  std::string mode;

  Sliding(const Operation& operation, std::size_t num_spatial) {
    const bool is_pooling = operation.attributes.contains("strides");
    strides = spatial_values(operation, is_pooling ? "strides" : "stride", num_spatial);
    dilations =
        is_pooling ? std::vector<std::int64_t>(num_spatial, 1) : spatial_values(operation, "dilation", num_spatial);
    mode = operation.text("pad_mode");
    pad = operation.list("pad");
    if (pad.size() == 1) pad.assign(2 * num_spatial, pad[0]);
    const bool is_valid_pad = pad.size() == 2 * num_spatial &&
                              std::ranges::all_of(pad, [](std::int64_t p) { return p >= 0 && p <= kLargestWindow; });
    if ((mode != "valid" && mode != "same" && mode != "pad") || !is_valid_pad) {
      const char* count = num_spatial == 1 ? "two" : num_spatial == 2 ? "four" : "six";
      operand_error(operation,
                    fmt::format("pad_mode is {} and pad {}; expected valid, same, or pad with one or {} numbers", mode,
                                to_string(operation.list("pad")), count));
    }
    if (mode != "pad" && std::ranges::any_of(pad, [](std::int64_t p) { return p != 0; })) {
      operand_error(operation,
                    fmt::format("pad is {}, which pad_mode {} does not use", to_string(operation.list("pad")), mode));
    }
  }

  /// Without input, output and the padding of "same".
  SlidingWindow window(const Operation& operation, std::size_t d, std::int64_t kernel) const {
    if (kernel > kLargestWindow) operand_error(operation, kTooLarge);
    return {1, 1, kernel, strides[d], dilations[d], pad[2 * d], pad[2 * d + 1]};
  }
};

}  // namespace

Interval SlidingWindow::outputs_reading(std::int64_t r, const Interval& input_range, const Interval& outputs) const {
  const std::int64_t first = ceil_div(input_range.begin + pad_before - dilation * r, stride);
  const std::int64_t last = floor_div(input_range.end - 1 + pad_before - dilation * r, stride);
  return {std::max(first, outputs.begin), std::min(last + 1, outputs.end)};
}

std::vector<std::string> spatial_names(std::size_t num_spatial) {
  if (num_spatial == 1) return {"l"};
  return num_spatial == 2 ? std::vector<std::string>{"h", "w"} : std::vector<std::string>{"d", "h", "w"};
}

AttributeSpec pad_mode_attribute() { return text("pad_mode", "valid", "valid, same or pad"); }

AttributeSpec pad_attribute(std::size_t num_spatial) {
  const char* each = num_spatial == 1   ? "before, after"
                     : num_spatial == 2 ? "top, bottom, left, right"
                                        : "front, back, top, bottom, left, right";
  return list("pad", std::vector<std::int64_t>{0}, fmt::format("of pad_mode pad: one number, or {}", each));
}

AttributeSpec spatial_attribute(std::string name, std::size_t num_spatial) {
  const char* text = num_spatial == 1   ? "one number"
                     : num_spatial == 2 ? "one number, or height, width"
                                        : "one number, or depth, height, width";
  return list(std::move(name), std::vector<std::int64_t>{1}, text);
}

std::vector<std::int64_t> spatial_values(const Operation& operation, const std::string& name, std::size_t num_spatial) {
  std::vector<std::int64_t> values = operation.list(name);
  if (values.size() == num_spatial + 2 && values[0] == 1 && values[1] == 1)
    values.erase(values.begin(), values.begin() + 2);
  if (values.size() == 1) values.assign(num_spatial, values[0]);
  const bool is_valid = values.size() == num_spatial && std::ranges::all_of(values, [](std::int64_t value) {
                          return value >= 1 && value <= kLargestWindow;
                        });
  if (!is_valid) {
    const char* expected = num_spatial == 1   ? "one positive number"
                           : num_spatial == 2 ? "one or two positive numbers"
                                              : "one or three positive numbers";
    operand_error(operation, fmt::format("{} is {}; expected {}", name, to_string(operation.list(name)), expected));
  }
  return values;
}

SpatialWindows spatial_windows(const Operation& operation, const Shape& input, const Shape& kernel) {
  const Sliding sliding(operation, input.size());
  SpatialWindows windows;
  for (std::size_t d = 0; d < input.size(); ++d) {
    SlidingWindow window = sliding.window(operation, d, kernel[d]);
    window.input = input[d];
    if (window.input > kLargestWindow) operand_error(operation, kTooLarge);
    if (sliding.mode == "same") {
      window.output = ceil_div(window.input, window.stride);
      const std::int64_t padding =
          std::max<std::int64_t>(0, (window.output - 1) * window.stride + reach_of(window) - window.input);
      window.pad_before = padding / 2;
      window.pad_after = padding - window.pad_before;
    } else {
      const std::int64_t padded = window.input + window.pad_before + window.pad_after;
      if (padded < reach_of(window)) {
        operand_error(operation,
                      fmt::format("a window of {} does not fit in {} positions (input {}, padding {} and {})",
                                  reach_of(window), padded, window.input, window.pad_before, window.pad_after));
      }
      window.output = (padded - reach_of(window)) / window.stride + 1;
    }
    windows.push_back(window);
  }
  return windows;
}

Shape transposed_extents(const Operation& operation, const Shape& output, const Shape& kernel) {
  const Sliding sliding(operation, output.size());
  std::vector<std::int64_t> extra = operation.list("output_padding");
  if (extra.size() == 1) extra.assign(output.size(), extra[0]);
  Shape extents;
  for (std::size_t d = 0; d < output.size(); ++d) {
    const SlidingWindow window = sliding.window(operation, d, kernel[d]);
    if (output[d] > kLargestWindow) operand_error(operation, kTooLarge);
    const bool is_same = sliding.mode == "same";
    const std::int64_t most = is_same ? 0 : window.stride - 1;
    if (extra.size() != output.size() || extra[d] < 0 || extra[d] > most) {
      operand_error(operation,
                    fmt::format("output_padding is {}; expected {}", to_string(operation.list("output_padding")),
                                is_same ? "0, as pad_mode is same" : fmt::format("0 to {}, less than stride", most)));
    }
    extents.push_back(is_same ? output[d] * window.stride
                              : (output[d] - 1) * window.stride + reach_of(window) - window.pad_before -
                                    window.pad_after + extra[d]);
    if (extents[d] < 1) operand_error(operation, fmt::format("padding leaves {} positions", extents[d]));
  }
  return extents;
}

ForwardWalk forward_walk(RuleBuilder& builder, const SlidingWindow& window, const std::string& name) {
  ForwardWalk walk;
  walk.output = builder.add(name, window.output);
  walk.offset = builder.add("k" + name, window.kernel, FactorKind::kNeedReplication);
  const bool slides = window.kernel > 1 || window.stride > 1 || window.output != window.input;
  walk.input = slides ? windowed(walk.output, walk.offset,
                                 {0, 0, window.stride, window.dilation, window.pad_before, window.pad_after})
                      : walk.output;
  return walk;
}

BackwardWalk backward_walk(RuleBuilder& builder, const SlidingWindow& window, const std::string& name,
                           bool needs_input) {
  BackwardWalk walk;
  if (window.input % window.stride != 0) {
    walk.input = builder.add("t" + name, window.input, FactorKind::kNeedReplication);
    return walk;
  }
  // The outputs h + lo to h + hi read input stride*h + t, 0 <= t < stride.
  const std::int64_t lo = ceil_div(window.pad_before - window.dilation * (window.kernel - 1), window.stride);
  const std::int64_t hi = floor_div(window.stride - 1 + window.pad_before, window.stride);
  const std::int64_t count = window.input / window.stride;
  const DimensionWalk h = builder.add(name, count);
  walk.input =
      window.stride == 1 ? h : product(h, builder.add("t" + name, window.stride, FactorKind::kNeedReplication));
  walk.output = h;
  if (lo != 0 || hi != 0 || window.output != count) {
    const DimensionWalk offset = builder.add("k" + name, hi - lo + 1, FactorKind::kNeedReplication);
    walk.output = windowed(h, offset, {0, 0, 1, 1, -lo, std::max<std::int64_t>(0, count + hi - window.output)});
  }
  if (needs_input) {
    const std::int64_t reach = window.stride * (hi - lo) + window.dilation * (window.kernel - 1) + 1;
    const std::int64_t before = window.pad_before - window.stride * lo;
    const std::int64_t after = std::max<std::int64_t>(0, window.stride * (count - 1) + reach - before - window.input);
    const DimensionWalk offset = builder.add("r" + name, reach, FactorKind::kNeedReplication);
    walk.input_window = windowed(h, offset, {0, 0, window.stride, 1, before, after});
  }
  return walk;
}

Interval backward_range(const KernelCall& call, const SlidingWindow& window, const std::string& name,
                        std::int64_t local_size) {
  const std::int64_t begin = window.input % window.stride == 0 ? call.box(name).begin * window.stride : 0;
  return {begin, begin + local_size};
}

}  // namespace shardplan
