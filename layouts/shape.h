#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shared_vector.h"
#include "base/units.h"

namespace shardplan {

/// The extents of a tensor, one per dimension, the most major first; empty for a scalar. Global or of one device's
/// shard (local), as the variable's name says.
///
///   shape       num_elements   num_bytes at 2 bytes an element   to_string
///   []          1              2                                 "[]"
///   [8]         8              16                                "[8]"
///   [512, 4]    2048           4096                              "[512, 4]"
///   [0, 4]      0              0                                 "[0, 4]"
using Shape = std::vector<std::int64_t>;
/// Shared by all copies: a model has a few dozen shapes and a million tensors.
using SharedShape = SharedVector<std::int64_t>;

/// The product of the extents, or the largest number there is if the product is larger.
std::int64_t num_elements(const Shape& shape);

/// `num_elements` times the bytes of one, with the same limit.
Bytes num_bytes(const Shape& shape, Bytes element_bytes);

/// As every message and report writes a shape.
std::string to_string(const Shape& shape);
inline std::string to_string(const SharedShape& shape) { return to_string(shape.items()); }

}  // namespace shardplan
