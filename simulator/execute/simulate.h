#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

struct SimulationOptions {
  std::uint64_t seed = 0;
  int steps = 20;
  int threads = 1;
  std::stop_token stop = {};
};

/// The loss of one step, before its update.
struct SimulatedStep {
  double one_device = 0;
  double mesh = 0;  // the first device's; all have the same
};

/// Trains on one batch made from the seed, again and again, so that the loss falls: on one device and on the mesh, each
/// from its own weights of the step before, in float64 whatever the dtypes. Optimizer states start at zero.
///
/// Requires a graph with a loss, and a kernel for every operator. Throws Stopped if asked to stop.
std::vector<SimulatedStep> simulate(const ParallelProgram& program, const OperatorGraph& graph,
                                    const SimulationOptions& options);

}  // namespace shardplan
