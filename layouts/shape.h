#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shared_vector.h"
#include "base/units.h"

namespace shardplan {

/// The extents of a tensor, one per dimension, the most major first; empty for a scalar. The variable's name says
/// whether the shape is global or that of one device's shard (local).
///
///   shape       num_elements   num_bytes at 2 bytes an element   to_string
///   []          1              2                                 "[]"
///   [8]         8              16                                "[8]"
///   [512, 4]    2048           4096                              "[512, 4]"
///   [0, 4]      0              0                                 "[0, 4]"
using Shape = std::vector<std::int64_t>;
/// Shared by all copies: a model has a few dozen shapes and a million tensors.
using SharedShape = SharedVector<std::int64_t>;

/// The product of the extents, capped at the largest std::int64_t.
std::int64_t num_elements(const Shape& shape);

/// `num_elements` times the bytes of one element, with the same cap.
Bytes num_bytes(const Shape& shape, Bytes element_bytes);

/// The format of a shape in messages and reports.
std::string to_string(const Shape& shape);
inline std::string to_string(const SharedShape& shape) { return to_string(shape.items()); }

}  // namespace shardplan
