#pragma once

#include <limits>
#include <vector>

#include "layouts/shape.h"

namespace shardplan {

/// Fills buffers after the shorter pieces of an uneven dimension (layouts/uneven.h): results that use it become NaN.
inline constexpr double kPadding = std::numeric_limits<double>::quiet_NaN();

/// The first `held` positions along each dimension of a row-major buffer of shape `buffer_shape`, without its padding.
/// Requires held[d] <= buffer_shape[d].
std::vector<double> without_padding(const std::vector<double>& buffer, const Shape& buffer_shape, const Shape& held);

/// The inverse: a buffer of shape `buffer_shape` that begins with `values` of shape `held` and is NaN elsewhere.
std::vector<double> with_padding(const std::vector<double>& values, const Shape& held, const Shape& buffer_shape);

/// a == b, with padding equal to padding.
bool hold_the_same(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace shardplan
