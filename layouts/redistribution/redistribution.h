#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The steps from one layout to another; none if they have the same placement.
struct Redistribution {
  TensorLayout from;
  TensorLayout to;
  std::vector<CollectiveStep> steps;
  Picoseconds time = 0;
  Bytes sent = 0;
  Bytes peak = 0;  // input plus output of the worst step, of one device
};

/// Fills in `time`, `sent` and `peak` of the whole.
void add_up(Redistribution& redistribution, Bytes tensor_bytes);

/// The least number of pieces that the steps' results split the tensor into: the largest intermediate shard is the
/// tensor divided by this. The largest possible number if there are no steps.
std::int64_t least_shards(const Redistribution& redistribution);

/// Whether an intermediate shard is larger than those of both ends. Such a plan is made only if no path within the
/// bound was found (never for 1720 pairs of random layouts on seven meshes, six per cent of them without a common
/// refinement; but such pairs exist), or if the bound was lifted.
bool exceeds_larger_end(const Redistribution& redistribution);

}  // namespace shardplan
