#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "program/parallel_program.h"
#include "simulator/execute/simulate.h"
#include "simulator/workers/worker_link.h"

namespace shardplan {

struct WorkerRunOptions {
  std::uint64_t seed = 0;
  int steps = 1;                  // of training, or number of batches
  std::uint64_t first_batch = 0;  // of a graph that is not trained; training uses 0 up to its micro-batches - 1
  int threads = 1;
  std::stop_token stop = {};
};

/// Whole tensors of parameters and states, by name.
using StoredTensors = std::map<std::string, TensorValues>;

/// The largest buffer of one device that a worker receives.
std::int64_t largest_message(const ParallelProgram& program);

/// Runs one worker's part of a program, as `simulate` runs all of it. `stored` holds initial parameters and states
/// (missing ones are drawn) and receives this worker's final ones. Worker 0 receives the graph's scalar outputs from
/// the workers that have them and returns them (`SimulatedStep::mesh`); the other workers return none.
///
/// Requires a kernel for every operator. Throws what `WorkerLink` throws.
std::vector<SimulatedScalar> run_worker(const ParallelProgram& program, const OperatorGraph& graph, WorkerLink& link,
                                        StoredTensors& stored, const WorkerRunOptions& options);

/// Runs the same graph on one device, from `stored`, and adds its results to those of the workers.
void run_one_device(const OperatorGraph& graph, StoredTensors& stored, const WorkerRunOptions& options,
                    std::vector<SimulatedScalar>& scalars);

}  // namespace shardplan
