#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "program/parallel_program.h"
#include "simulator/execute/executor.h"

namespace shardplan {

struct SimulationOptions {
  std::uint64_t seed = 0;
  int steps = 20;
  std::int64_t first_step = 0;  // the number of steps made before
  int threads = 1;
  std::stop_token stop = {};
  /// What parameters and states begin with; those that are missing are drawn, states begin at zero.
  std::map<TensorId, TensorValues> loaded = {};
  /// Called after each step with how many were made in all.
  std::function<void(std::int64_t steps, const Executor&)> after_step = {};
};

/// A number of one step: the loss before the step's update, or another output.
struct SimulatedStep {
  double one_device = 0;
  double mesh = 0;  // the first device's; all have the same
};

/// An output of the graph that is one number.
struct SimulatedScalar {
  std::string name;
  std::vector<SimulatedStep> steps;
};

/// Runs a graph on one device and on the mesh, each from its own weights of the step before, in float64 whatever the
/// dtypes. Training runs on one batch made from the seed, again and again, so that the loss falls; a graph that is not
/// trained is run on a new batch in each step, of which the first is the one that training has. The first result is
/// the loss if there is one.
///
/// Requires a kernel for every operator. Throws Stopped if asked to stop.
std::vector<SimulatedScalar> simulate(const ParallelProgram& program, const OperatorGraph& graph,
                                      const SimulationOptions& options);

/// The outputs that are one number, the loss first, and their names.
std::vector<TensorId> scalar_output_tensors(const OperatorGraph& graph);
std::vector<std::string> scalar_outputs(const OperatorGraph& graph);

}  // namespace shardplan
