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
  std::int64_t first_step = 0;  // number of steps made before
  int threads = 1;
  std::stop_token stop = {};
  /// Initial values of parameters and states; missing parameters are drawn, missing states start at zero.
  std::map<TensorId, TensorValues> loaded = {};
  /// Called after each step with the total number of steps.
  std::function<void(std::int64_t steps, const Executor&)> after_step = {};
};

/// The value in one step: the loss before the step's update, or another output.
struct SimulatedStep {
  double one_device = 0;
  double mesh = 0;  // that of the first device; all have the same
};

/// A scalar output of the graph.
struct SimulatedScalar {
  std::string name;
  std::vector<SimulatedStep> steps;
};

/// Runs a graph on one device and on the mesh, each from its own weights of the previous step, in float64 whatever the
/// dtypes. Training repeats one batch made from the seed, so that the loss falls; a graph that is not trained runs on a
/// new batch in each step, the first being the batch that training uses. The first result is the loss if there is one.
///
/// Requires a kernel for every operator. Throws Stopped if asked to stop.
std::vector<SimulatedScalar> simulate(const ParallelProgram& program, const OperatorGraph& graph,
                                      const SimulationOptions& options);

/// The scalar outputs, the loss first, and their names.
std::vector<TensorId> scalar_output_tensors(const OperatorGraph& graph);
std::vector<std::string> scalar_outputs(const OperatorGraph& graph);

}  // namespace shardplan
