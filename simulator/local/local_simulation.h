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

/// The values of parameters and states, by rank.
using RankValues = std::vector<std::map<TensorId, TensorValues>>;

struct LocalSimulationOptions {
  std::uint64_t seed = 0;
  int steps = 20;
  std::int64_t first_step = 0;  // number of steps behind a loaded checkpoint
  std::stop_token stop = {};
  /// Initial values; missing parameters are drawn, missing states start at zero. Empty, or one entry per rank.
  RankValues loaded = {};
  /// Called after each step with the number of steps since training began, including those before `first_step`.
  std::function<void(std::int64_t steps, const LocalExecutor&)> after_step = {};
};

/// The loss, or another scalar output.
struct LocalScalar {
  std::string name;
  /// By step and rank; nothing on a rank that does not have the output, or has it with several elements.
  std::vector<std::vector<std::optional<double>>> steps;
};

/// Runs a model written per device: every rank runs its own program on its own memory, in float64 whatever the dtypes.
/// Ranks start with equal numbers for tensors that are whole or their own, and with pieces of one whole otherwise (see
/// `rank_pieces`). Training repeats one batch made from the seed; a model that is not trained runs on a new batch in
/// each step. The first result is the loss if there is one.
///
/// Throws InputError: too many numbers for one machine, no scalar output; Stopped if asked to stop.
std::vector<LocalScalar> simulate_locally(const std::vector<std::shared_ptr<const Model>>& ranks, const RankGraphs& run,
                                          const LocalSimulationOptions& options);

}  // namespace shardplan
