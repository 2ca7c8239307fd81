#pragma once

#include <cstdint>
#include <string>

#include "cli/commands/planning_options.h"

namespace shardplan {

/// The options of `simulate`.
struct SimulateArguments {
  PlanningArguments planning;
  int steps = 20;
  bool full_size = false;
  bool json = false;
  std::string save;  // folder; empty: nothing is saved
  std::string load;
  std::string prefix = "checkpoint";
  bool integrated = false;
  std::int64_t save_every = 0;  // steps; 0: at the end alone
  std::int64_t keep_most = 5;
};

}  // namespace shardplan
