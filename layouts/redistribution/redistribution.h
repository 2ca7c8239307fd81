#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The steps from one layout to another; none if they place alike.
struct Redistribution {
  TensorLayout from;
  TensorLayout to;
  std::vector<CollectiveStep> steps;
  Picoseconds time = 0;
  Bytes sent = 0;
  Bytes peak = 0;  // input plus output of the worst step, of one device
};

/// Fills `time`, `sent` and `peak` of the whole.
void add_up(Redistribution& redistribution, Bytes tensor_bytes);

/// In how many pieces the steps' results cut the tensor at least: the largest shard on the way is the tensor divided by
/// this. The largest number there is if there are no steps.
std::int64_t least_shards(const Redistribution& redistribution);

/// Whether a shard on the way is larger than both ends'. Such a plan is made only where no path within was found (none
/// of 1720 pairs of random layouts on seven meshes, six per cent of them without a common refinement; but there are
/// some), or if the bound was lifted.
bool exceeds_larger_end(const Redistribution& redistribution);

}  // namespace shardplan
