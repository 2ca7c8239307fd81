#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "model/model.h"
#include "planner/plan.h"
#include "program/local_program.h"

namespace shardplan {

/// A communication of a model written per device, and when it runs.
struct LocalCommunication {
  std::string name;  // the operator's name on the first member
  std::string type;
  std::vector<std::int64_t> ranks;  // in the order of the group
  Bytes bytes = 0;                  // contributed by the first member
  Picoseconds begin = 0;
  Picoseconds time = 0;
};

/// What one rank does in a step.
struct LocalRank {
  Plan plan;  // its own graph on one device: program, memory; communications take no time in it
  Picoseconds computation = 0;
  Picoseconds communication = 0;
  Picoseconds end = 0;
  Bytes peak() const { return plan.memory.peak; }
};

/// The cost of a model written per device, in which nothing is left to decide.
struct LocalPlan {
  std::shared_ptr<const Model> model;  // as rank 0 reads it
  Cluster cluster;
  std::vector<LocalRank> ranks;
  std::vector<LocalCommunication> communications;  // in the order in which they run
  Picoseconds step = 0;                            // the end of the last rank
  Bytes usable = 0;

  /// The index of the rank that ends last, and of the rank that needs the most memory; at a tie the first.
  std::size_t slowest() const;
  std::size_t largest() const;
  bool fits() const { return ranks[largest()].peak() <= usable; }
};

/// Computes the costs by the cluster's cost model: kernels and memory of each rank as for a plan on one device,
/// communications as collectives over the links between their ranks. Groups of one operator run at the same time and
/// share the links.
///
/// A rank runs its kernels one after the other. A communication starts when all its members have done everything
/// before it, and the first operator that reads its result waits for it. Exchanges with neighbours are sends that all
/// start at the same time (costmodel/send_costs.h).
///
/// Throws InputError: whatever `models_of_ranks` and `local_program` throw. Requires `model->local`.
LocalPlan plan_locally(const std::shared_ptr<const Model>& model, const Cluster& cluster,
                       const std::optional<Bytes>& capacity = {});

}  // namespace shardplan
