#pragma once

#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The axes that shard one dimension, major to minor.
std::vector<AxisRef> axes_along(const DimensionLayout& dimension);

/// The axes that shard a tensor, dimension by dimension: devices with equal coordinates along them hold the same
/// elements.
std::vector<AxisRef> cutting_axes(const TensorLayout& layout);

/// All axes that a layout names: those that shard the tensor and those over which it is partial.
std::vector<AxisRef> axes_of(const TensorLayout& layout);

/// The parts of `axes` that are in none of `others`: hccs without hccs:(2)2 is hccs:(1)2 on hccs=4.
std::vector<AxisRef> without(std::vector<AxisRef> axes, const std::vector<AxisRef>& others);

}  // namespace shardplan
