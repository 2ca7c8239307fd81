#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/redistribution/search/layout_space.h"

namespace shardplan {

/// In each dimension the products at which a part ends, ascending: those of (2:{}, 12:{x}) are {2}; none if the
/// dimension is not sharded, or consists of one part. Layouts of one tensor with the same borders share a space.
using PartBorders = std::vector<std::vector<std::int64_t>>;
PartBorders part_borders(const TensorLayout& layout, const Shape& shape);

/// The borders of both; nothing if some dimension's borders do not divide each other in turn.
std::optional<PartBorders> joined_borders(const PartBorders& a, const PartBorders& b);

/// The given pieces and the parts between the borders, for layouts that are partial over sums at most.
LayoutSpace space_of_pieces(const std::vector<AxisRef>& pieces, const PartBorders& borders, const Shape& shape,
                            std::int64_t num_devices);

/// The same pieces in dimensions without borders, which they shard from the start, in any order: 6 as 2 x 3 or as 3 x
/// 2. Layouts without a common refinement can meet there.
LayoutSpace space_of_rows(const LayoutSpace& space, const Shape& shape, std::int64_t num_devices);

}  // namespace shardplan
