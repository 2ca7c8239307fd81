#pragma once

#include <vector>

#include "base/units.h"
#include "planner/overlap/concurrency.h"

namespace shardplan {

/// A communication and the kernels that may overlap with it.
struct Hideable {
  Picoseconds time = 0;
  OperatorSet beside;
};

/// A vertex cover: every pair of a communication and a kernel that may overlap has at least one member in it.
struct Cover {
  std::vector<char> communications;
  std::vector<char> kernels;  // by operator
};

/// The cover of least total time in the bipartite graph of communications and kernels. No order hides more time than
/// this total, and if every pair could overlap freely, some order would hide as much (König). It is a minimum cut,
/// found as a maximum flow from communications to kernels by augmenting paths. Of equal covers, one with few kernels;
/// members without time are omitted where possible. If the flow takes too long, the cover is all communications.
Cover least_cover(const std::vector<Hideable>& communications, const std::vector<Picoseconds>& kernels);

}  // namespace shardplan
