#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// Why no plan fits, and what would help. Sizes are bytes per device.
struct Infeasibility {
  const Plan* smallest = nullptr;  // the plan with the least memory that was found
  bool proven = false;             // no plan on this mesh fits
  Bytes least = 0;                 // lower bound on the memory of any plan on this mesh; 0: not known

  /// A change under which the smallest plan fits.
  struct Remedy {
    enum class Kind {
      kFreeLayers,     // layers that may differ
      kTraining,       // more blocks recomputed in the backward pass, more micro-batches, or both
      kMoreNodes,      // a preset with 2, 4, ... times the nodes
      kLargerDevices,  // devices with this much memory
    };
    Kind kind = Kind::kLargerDevices;
    std::vector<std::string> recompute = {};  // "layers.*.attn", and others that the file lists; empty: as there
    std::int64_t micro_batches = 0;           // instead of those of the file; 0: as there
    std::string cluster = {};                 // "ascend-910x2"
    Bytes device_memory = 0;
    Bytes peak = 0;          // peak of the plan with the least memory after the change
    double step_change = 0;  // change of its step, as a fraction of the step before
  };
  std::vector<Remedy> remedies;
  /// The batch of a training model as it is written, "262144" or "2*B", if it is not the name of a dim: only a name can be
  /// divided, so that more micro-batches were not tried.
  std::string undivided_batch;

  /// A decision of the user that costs memory.
  struct Obstacle {
    std::string name = {};       // "layers.*.up.weight"; empty: all decisions of the user together
    std::string entry = {};      // the decision: "[1, 1]"
    bool is_option = false;      // made by --set, not in the model file
    int line = 0;                // its line in the model file
    std::size_t num_joined = 1;  // number of decisions left out
    Bytes peak_without = 0;      // peak of the plan with the least memory without it; less than with it
    bool fits_without = false;
  };
  std::vector<Obstacle> obstacles;
};

/// Tries the changes one by one. Each time the model is planned again for the least memory, and only changes after
/// which the plan fits become remedies. The first few user strategies are left out one by one, then all together.
///
/// Requires: `smallest` (`ModelPlanner::smallest`) needs more than `smallest.usable`, and outlives the result.
Infeasibility analyse_infeasibility(const Plan& smallest, std::stop_token stop = {});

}  // namespace shardplan
