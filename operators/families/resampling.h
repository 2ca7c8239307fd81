#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that map each dimension by itself: every position of the result is a weighted sum of positions of x.
///
///   Pad                      paddings (before, after of each dimension), mode constant, reflect or edge
///   Roll                     positions moved along axis by shifts, around the end
///   Resize                   [n, c, h, w] to size: nearest or bilinear, by align_corners or half_pixel_centers
///   AdaptiveAvgPool1D/2D/3D  output_size means of neighbours, as PyTorch's
///   AvgPool1D/3D             means of windows; padding does not count
///
/// Dimensions that are not mapped are cut freely. A mapped one is whole, but for
///   pooling into equal bins that do not overlap: bins are cut freely, and a bin may be cut too, which leaves partial sums
///   pooling by other windows: cut with a halo
///   nearest resizing in whole multiples: cut freely
std::vector<OperatorType> resampling_operators();

}  // namespace shardplan
