#include "layouts/dimension_layout.h"

namespace shardplan {

std::int64_t DimensionLayout::num_pieces() const {
  std::int64_t pieces = 1;
  for (const DimensionPart& part : parts) pieces *= shardplan::num_pieces(part.axes);
  return pieces;
}

}  // namespace shardplan
