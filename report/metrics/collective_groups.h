#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// A group of similar collectives: one line of the summary and of `diff`.
struct CollectiveGroup {
  std::string what;  // "reduce_scatter  {pcie, hccs}"
  std::string axes;
  std::string from;  // "gradients of layers.*", "norm_f -> head"
  std::size_t count = 0;
  Bytes bytes = 0;        // all together
  Picoseconds time = 0;   // all together
  std::size_t first = 0;  // its first instruction
};
/// All collectives that take time, costliest first.
std::vector<CollectiveGroup> costliest_collectives(const Plan& plan);

}  // namespace shardplan
