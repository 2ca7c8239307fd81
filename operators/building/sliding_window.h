#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "operators/building/rule_builder.h"
#include "operators/operator_type.h"

namespace shardplan {

/// The largest size, kernel, stride or padding: no product of two leaves 64 bits.
inline constexpr std::int64_t kLargestWindow = std::int64_t{1} << 30;

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

  /// The input position, which may be in the padding.
  std::int64_t position(std::int64_t i, std::int64_t r) const { return stride * i + dilation * r - pad_before; }
  /// The outputs i whose offset r falls on [begin, end) of the input, clipped to `outputs`.
  Interval outputs_reading(std::int64_t r, const Interval& input_range, const Interval& outputs) const;
};
/// For one spatial dimension ("l"), two ("h", "w") or three ("d", "h", "w").
using SpatialWindows = std::vector<SlidingWindow>;

/// The names of the factors of `num_spatial` spatial dimensions.
std::vector<std::string> spatial_names(std::size_t num_spatial);

/// The attributes that say how a window slides.
AttributeSpec pad_mode_attribute();
AttributeSpec pad_attribute(std::size_t num_spatial);
AttributeSpec spatial_attribute(std::string name, std::size_t num_spatial);

/// The values of such a list for each spatial dimension: one for all, one each, or one each behind 1, 1 for n and c.
std::vector<std::int64_t> spatial_values(const Operation& operation, const std::string& name, std::size_t num_spatial);

/// The windows of `kernel` sizes over the spatial `input` extents of a tensor [n, c, ...], from the attributes
/// stride(s), pad_mode ("valid", "same", "pad"), pad (before and after each dimension) and dilation. Throws InputError
/// if they make no sense.
SpatialWindows spatial_windows(const Operation& operation, const Shape& input, const Shape& kernel);

/// The input extents of windows with the same attributes that have these outputs, the smallest but for the attribute
/// output_padding: what a transposed convolution makes of x.
Shape transposed_extents(const Operation& operation, const Shape& output, const Shape& kernel);

/// How the input dimension walks where the factor is the output: a window, or the plain factor if there is nothing to
/// slide.
struct ForwardWalk {
  DimensionWalk input;
  DimensionWalk output;
  DimensionWalk offset;  // along the kernel dimension
};
ForwardWalk forward_walk(RuleBuilder& builder, const SlidingWindow& window, const std::string& name);

/// How the dimensions walk where the input's gradient is the result: its dimension is (h, phase) with `stride` phases,
/// and the outputs that touch h are a window of stride 1 round it. Not sharded if the stride does not divide the input.
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
