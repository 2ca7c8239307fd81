#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/redistribution/search/layout_space.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// How finely a search looks, from all there is to what it needs.
enum class Detail {
  kAll,     // every axis in its prime factors, every dimension in all digits that they can cut, partial sums
  kPrimes,  // every axis in its prime factors, dimensions in the digits that the ends cut
  kEnds,    // axes as the two ends need it, the mesh's other axes whole
  kUsed,    // the same, and only one dimension in which axes can be parked behind what the ends cut
  kMoved,   // the same, without the axes that neither end uses and without parking
};

/// The pieces and bins that can say both layouts (canonical, of one shape), refined so that both cut every dimension at
/// the same products where that is possible: [{x}, {y}] to [{y}, {x}] on x=2, y=4 gives x, y:(1)2, y:(2)2. Two charts,
/// one for each layout, if an axis or a dimension has no common refinement.
std::vector<PieceChart> common_charts(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                      const Shape& shape, Detail detail);

/// The same pieces with dimensions that are cut from their beginning on only, by pieces in any order: 6 as 2 x 3 or as
/// 3 x 2. What has no common refinement can meet there.
PieceChart chart_of_rows(const PieceChart& chart, const Shape& shape, std::int64_t num_devices);

/// Inside each dimension the products at which a part ends, ascending: those of (2:{}, 12:{x}) are {2}; where nothing
/// is cut, or one part is the whole, there are none.
using PartBorders = std::vector<std::vector<std::int64_t>>;
PartBorders part_borders(const TensorLayout& layout, const Shape& shape);
/// All of both; nothing if in some dimension one does not divide the next.
std::optional<PartBorders> joined_borders(const PartBorders& a, const PartBorders& b);
/// The pieces as they are and the parts between the borders, for layouts that are partial over sums at most.
PieceChart chart_of_pieces(const std::vector<AxisRef>& pieces, const PartBorders& borders, const Shape& shape,
                           std::int64_t num_devices);

/// Those of the ends that are partial, in order, once each.
std::vector<Reduction> reductions_of(const TensorLayout& from, const TensorLayout& to);

}  // namespace shardplan
