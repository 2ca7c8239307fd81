#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// Why no plan fits, and what would. Sizes are bytes of one device.
struct Infeasibility {
  const Plan* smallest = nullptr;  // the plan of least memory that was found
  bool proven = false;             // no plan on this mesh fits
  Bytes least = 0;                 // no plan on this mesh needs less; 0: not known

  /// A change under which the smallest plan fits.
  struct Remedy {
    enum class Kind {
      kFreeLayers,     // layers that may differ
      kMicroBatches,   // training in so many
      kRecompute,      // recompute a block in the backward pass
      kMoreNodes,      // another preset of twice the nodes
      kLargerDevices,  // devices of so much memory
    };
    Kind kind = Kind::kLargerDevices;
    std::int64_t micro_batches = 0;
    std::string block = {};    // "layers.*.attn"
    std::string cluster = {};  // "ascend-910x2"
    Bytes device_memory = 0;
    Bytes peak = 0;          // the smallest plan's then
    double step_change = 0;  // its step, as a share of today's step more (or less)
  };
  std::vector<Remedy> remedies;

  /// What the user decided that costs memory.
  struct Obstacle {
    std::string name = {};       // "layers.*.up.weight"; empty: all that the user decided together
    std::string entry = {};      // what is decided of it: "[1, 1]"
    bool is_option = false;      // by --set, not in the model file
    int line = 0;                // in the model file
    std::size_t num_joined = 1;  // decisions left out
    Bytes peak_without = 0;      // of the smallest plan then, less than today's
    bool fits_without = false;
  };
  std::vector<Obstacle> obstacles;
};

/// Tries the changes one by one: each is planned again for the least memory, and only those under which the plan fits
/// are remedies. User strategies are left out one by one, the first few of them, and all together.
///
/// Requires: `smallest` (`ModelPlanner::smallest`) needs more than `smallest.usable`; it outlives the answer.
Infeasibility analyse_infeasibility(const Plan& smallest, std::stop_token stop = {});

}  // namespace shardplan
