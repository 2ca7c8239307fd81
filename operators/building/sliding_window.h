#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "operators/building/rule_builder.h"
#include "operators/operator_type.h"

namespace shardplan {

/// One spatial dimension of a convolution or pooling: output i reads input stride*i + dilation*r - pad_before, 0 <= r <
/// kernel.
struct SlidingWindow {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  std::int64_t pad_after = 0;

  /// The input position, which may lie in the padding.
  std::int64_t position(std::int64_t i, std::int64_t r) const { return stride * i + dilation * r - pad_before; }
  /// The outputs i whose offset r falls on [begin, end) of the input, clipped to `outputs`.
  Interval outputs_reading(std::int64_t r, const Interval& input_range, const Interval& outputs) const;
};
using SpatialWindows = std::array<SlidingWindow, 2>;

/// The attributes that say how a window slides.
AttributeSpec pad_mode_attribute();
AttributeSpec pad_attribute();
AttributeSpec height_and_width(std::string name);

/// Height and width of a window over an NCHW tensor of `input` extents, from the attributes stride(s), pad_mode
/// ("valid", "same", "pad"), pad (top, bottom, left, right) and dilation. Throws InputError if they make no sense.
SpatialWindows spatial_windows(const Operation& operation, const std::array<std::int64_t, 2>& input,
                               const std::array<std::int64_t, 2>& kernel);

/// One or two (height, width) or four (1, 1, height, width) values of a list attribute.
std::array<std::int64_t, 2> pair_attribute(const Operation& operation, const std::string& name);

/// How the input dimension walks where the factor is the output: a window, or the plain factor if there is nothing to
/// slide.
struct ForwardWalk {
  DimensionWalk input;
  DimensionWalk output;
  DimensionWalk offset;  // along the kernel dimension
};
ForwardWalk forward_walk(RuleBuilder& builder, const SlidingWindow& window, const std::string& name);

/// How the dimensions walk where the input's gradient is the result: its dimension is (h, phase) with `stride` phases,
/// and the outputs that touch h are a window of stride 1 round it. Whole if the stride does not divide the input.
struct BackwardWalk {
  DimensionWalk input;         // dx's
  DimensionWalk output;        // dy's
  DimensionWalk input_window;  // x's, where all that those outputs read is needed too
};
BackwardWalk backward_walk(RuleBuilder& builder, const SlidingWindow& window, const std::string& name,
                           bool needs_input);

/// The local range of a dimension of dx.
Interval backward_range(const KernelCall& call, const SlidingWindow& window, const std::string& name,
                        std::int64_t local_size);

}  // namespace shardplan
