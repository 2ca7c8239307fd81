#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layouts/shape.h"

namespace shardplan {

/// A part of a dimension: the first `real` of its `padded` positions exist in the model without padding.
struct PaddedPart {
  std::int64_t padded = 1;
  std::int64_t real = 1;

  bool operator==(const PaddedPart&) const = default;
};

/// One dimension as a product of parts, major to minor. 50257 words padded to 50304 are [50304:50257]; 12 heads of 64
/// padded to 16 heads are [1024:768]; q, k and v of these heads one after the other are [3:3, 1024:768]: a position
/// exists if each of its coordinates does. A part without padding is merged into the one before it.
using PaddedDimension = std::vector<PaddedPart>;

/// All dimensions of a tensor; one without padding has a single part with `real` == `padded`.
using PaddedShape = std::vector<PaddedDimension>;

std::int64_t padded_size(const PaddedDimension& dimension);
std::int64_t real_size(const PaddedDimension& dimension);
inline bool has_padding(const PaddedDimension& dimension) { return real_size(dimension) < padded_size(dimension); }
bool has_padding(const PaddedShape& shape);
Shape real_shape(const PaddedShape& shape);

/// The same product with the fewest parts.
PaddedDimension joined(const PaddedDimension& parts);

/// Whether a position of the dimension exists without padding, and at which position there.
struct RealPosition {
  bool exists = true;
  std::int64_t at = 0;
};
RealPosition real_position(const PaddedDimension& dimension, std::int64_t position);

/// "50304 (50257 + 47 padding)"; a dimension without padding is its size.
std::string to_string(const PaddedDimension& dimension);

}  // namespace shardplan
