#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "simulator/local/local_executor.h"
#include "simulator/local/rank_graphs.h"

namespace shardplan {

/// Numbers of parameters and states, by rank.
using RankValues = std::vector<std::map<TensorId, TensorValues>>;

struct LocalSimulationOptions {
  std::uint64_t seed = 0;
  int steps = 20;
  std::int64_t first_step = 0;  // how many steps a loaded checkpoint has behind it
  std::stop_token stop = {};
  /// What they begin with; those that are missing are drawn, states begin at zero. Empty, or one for every rank.
  RankValues loaded = {};
  /// Called after each step with the number of steps made since training began, those before `first_step` included.
  std::function<void(std::int64_t steps, const LocalExecutor&)> after_step = {};
};

/// The loss, or another output that is one number.
struct LocalScalar {
  std::string name;
  /// By step, by rank; nothing on a rank that does not have it, or of more than one number.
  std::vector<std::vector<std::optional<double>>> steps;
};

/// Runs a model written per device: every rank its own program on memories of its own, in float64 whatever the dtypes.
/// Ranks begin with the same numbers where a tensor is whole or their own, with their pieces of one whole otherwise (as
/// `rank_pieces` says). Training runs on one batch made from the seed, again and again; a model that is not trained runs
/// on a new batch in each step. The first result is the loss if there is one.
///
/// Throws InputError: too many numbers for one machine, no output of one number; Stopped if asked to stop.
std::vector<LocalScalar> simulate_locally(const std::vector<std::shared_ptr<const Model>>& ranks, const RankGraphs& run,
                                          const LocalSimulationOptions& options);

}  // namespace shardplan
