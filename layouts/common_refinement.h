#pragma once

#include <cstddef>
#include <vector>

#include "layouts/piece_chart.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// How finely a search looks.
enum class Detail {
  kPrimes,  // every axis of the mesh in its prime factors, every dimension: the same chart for nearly all pairs
  kEnds,    // axes and dimensions cut as the two ends need it, the mesh's other axes whole
  kUsed,    // the same, without the dimensions that neither end cuts but the most divisible one
  kMoved,   // the same, without the axes and dimensions that neither end uses
};

/// The pieces and bins that can say both layouts (canonical, of one shape), refined so that both cut every dimension at
/// the same products where that is possible: [{x}, {y}] to [{y}, {x}] on x=2, y=4 gives x, y:(1)2, y:(2)2. Two charts,
/// one for each layout, if an axis or a dimension has no common refinement.
std::vector<PieceChart> common_charts(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                      const Shape& shape, Detail detail);

/// Those of the ends that are partial, in order, once each.
std::vector<Reduction> reductions_of(const TensorLayout& from, const TensorLayout& to);

}  // namespace shardplan
