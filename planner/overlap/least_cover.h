#pragma once

#include <vector>

#include "base/units.h"
#include "planner/overlap/concurrency.h"

namespace shardplan {

/// A communication and the kernels that may run beside it.
struct Hideable {
  Picoseconds time = 0;
  OperatorSet beside;
};

/// Which communications and kernels together take part in all that may run at the same time.
struct Cover {
  std::vector<char> communications;
  std::vector<char> kernels;  // by operator
};

/// The cover of least time, where each communication runs beside each kernel that it may run beside: no order hides more
/// time than it holds, and were every pair free to run together, one would hide as much (König). A maximum flow from
/// communications to kernels, by augmenting paths. Of equal covers the one with the fewest kernels; what takes no time is
/// left out where nothing else is needed for that. Where the flow takes too long, all communications.
Cover least_cover(const std::vector<Hideable>& communications, const std::vector<Picoseconds>& kernels);

}  // namespace shardplan
