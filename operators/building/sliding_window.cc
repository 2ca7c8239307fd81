#include "operators/building/sliding_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operators/building/attributes.h"

namespace shardplan {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;  // so that no product of two leaves 64 bits

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

DimensionWalk windowed(const DimensionWalk& output, const DimensionWalk& offset, Window window) {
  window.output = output.factors[0];
  window.offset = offset.factors[0];
  return {{}, window};
}

}  // namespace

Interval SlidingWindow::outputs_reading(std::int64_t r, const Interval& input_range, const Interval& outputs) const {
  const std::int64_t first = ceil_div(input_range.begin + pad_before - dilation * r, stride);
  const std::int64_t last = floor_div(input_range.end - 1 + pad_before - dilation * r, stride);
  return {std::max(first, outputs.begin), std::min(last + 1, outputs.end)};
}

AttributeSpec pad_mode_attribute() { return text("pad_mode", "valid", "valid, same or pad"); }

AttributeSpec pad_attribute() {
  return list("pad", std::vector<std::int64_t>{0}, "of pad_mode pad: one number, or top, bottom, left, right");
}

AttributeSpec height_and_width(std::string name) {
  return list(std::move(name), std::vector<std::int64_t>{1}, "one number, or height, width");
}

std::array<std::int64_t, 2> pair_attribute(const Operation& operation, const std::string& name) {
  std::vector<std::int64_t> values = operation.list(name);
  if (values.size() == 4 && values[0] == 1 && values[1] == 1) values.erase(values.begin(), values.begin() + 2);
  if (values.size() == 1) values.push_back(values[0]);
  if (values.size() != 2 || values[0] < 1 || values[1] < 1 || values[0] > kLargest || values[1] > kLargest) {
    operand_error(operation,
                  fmt::format("{} is {}; expected one or two positive numbers", name, to_string(operation.list(name))));
  }
  return {values[0], values[1]};
}

SpatialWindows spatial_windows(const Operation& operation, const std::array<std::int64_t, 2>& input,
                               const std::array<std::int64_t, 2>& kernel) {
  const bool is_pooling = operation.attributes.contains("strides");
  const std::array<std::int64_t, 2> strides = pair_attribute(operation, is_pooling ? "strides" : "stride");
  const std::array<std::int64_t, 2> dilations =
      is_pooling ? std::array<std::int64_t, 2>{1, 1} : pair_attribute(operation, "dilation");
  const std::string& mode = operation.text("pad_mode");
  std::vector<std::int64_t> pad = operation.list("pad");
  if (pad.size() == 1) pad.assign(4, pad[0]);
  const bool is_valid_pad =
      pad.size() == 4 && std::ranges::all_of(pad, [](std::int64_t p) { return p >= 0 && p <= kLargest; });
  if ((mode != "valid" && mode != "same" && mode != "pad") || !is_valid_pad) {
    operand_error(operation,
                  fmt::format("pad_mode is {} and pad {}; expected valid, same, or pad with one or four numbers", mode,
                              to_string(operation.list("pad"))));
  }
  if (mode != "pad" && std::ranges::any_of(pad, [](std::int64_t p) { return p != 0; })) {
    operand_error(operation,
                  fmt::format("pad is {}, which pad_mode {} does not use", to_string(operation.list("pad")), mode));
  }
  SpatialWindows windows;
  for (std::size_t d = 0; d < 2; ++d) {
    SlidingWindow& window = windows[d];
    window = {input[d], 1, kernel[d], strides[d], dilations[d], pad[2 * d], pad[2 * d + 1]};
    if (window.input > kLargest || window.kernel > kLargest) operand_error(operation, "a window or input is too large");
    const std::int64_t reach = window.dilation * (window.kernel - 1) + 1;
    if (mode == "same") {
      window.output = ceil_div(window.input, window.stride);
      const std::int64_t padding =
          std::max<std::int64_t>(0, (window.output - 1) * window.stride + reach - window.input);
      window.pad_before = padding / 2;
      window.pad_after = padding - window.pad_before;
      continue;
    }
    const std::int64_t padded = window.input + window.pad_before + window.pad_after;
    if (padded < reach) {
      operand_error(operation, fmt::format("a window of {} does not fit in {} positions (input {}, padding {} and {})",
                                           reach, padded, window.input, window.pad_before, window.pad_after));
    }
    window.output = (padded - reach) / window.stride + 1;
  }
  return windows;
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
  if (window.input % window.stride != 0) return {};
  // Input stride*h + t, 0 <= t < stride, is read by the outputs h + lo to h + hi.
  const std::int64_t lo = ceil_div(window.pad_before - window.dilation * (window.kernel - 1), window.stride);
  const std::int64_t hi = floor_div(window.stride - 1 + window.pad_before, window.stride);
  const std::int64_t count = window.input / window.stride;
  BackwardWalk walk;
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
