#pragma once

#include <vector>

#include "layouts/redistribution/search/layout_space.h"

namespace shardplan {

/// The granularity of a search, from everything to the least that it needs.
enum class Refinement {
  kFull,      // every axis in its prime factors, every dimension in all digits that they can shard, partial sums
  kPrime,     // every axis in its prime factors, dimensions in the digits that the ends shard
  kEnds,      // axes as the two ends need them, the mesh's other axes whole
  kOneSpare,  // the same, with only one dimension in which pieces can be parked after those of the ends
  kMinimal,   // the same, without the axes that neither end uses and without parking
};

/// The space of both layouts (canonical, of one shape), refined so that both split every dimension at the same products
/// if possible: [{x}, {y}] to [{y}, {x}] on x=2, y=4 gives the pieces x, y:(1)2, y:(2)2. Two spaces, one for each
/// layout, if an axis or a dimension has no common refinement.
std::vector<LayoutSpace> common_spaces(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                       const Shape& shape, Refinement refinement);

/// The reductions of the ends that are partial, in order, once each.
std::vector<Reduction> reductions_of(const TensorLayout& from, const TensorLayout& to);

}  // namespace shardplan
