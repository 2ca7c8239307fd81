#pragma once

#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"
#include "simulator/local/local_simulation.h"

namespace shardplan {

/// The form of a checkpoint of what the ranks of a model written per device store between steps, parameters and states:
/// each rank its own file, with where its pieces begin. Numbers are F64, so that a run goes on exactly.
CheckpointForm local_form(const std::vector<std::shared_ptr<const Model>>& ranks, const RankGraphs& run,
                          std::int64_t step, std::uint64_t seed);

/// Writes what the ranks hold at the end of a step; `form` is `local_form`. Throws InputError.
void save_ranks(const std::string& folder, const CheckpointForm& form, const RankGraphs& run,
                const LocalExecutor& executor);

/// The form that brings a checkpoint of any devices, a plan's or ranks', to the ranks of a model: its parameters and states
/// where each rank holds them, in the checkpoint's dtypes. A parameter that is each rank's own also takes a tensor of its
/// own shape, which all ranks then begin with. States that the checkpoint does not hold are left out, which `notices`
/// says. Throws InputError with all faults: parameters that are missing, other shapes.
CheckpointForm form_for_ranks(const Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                              const RankGraphs& run, std::vector<std::string>& notices);

struct LoadedRanks {
  RankValues values;
  std::vector<std::string> notices;
};
/// What each rank begins with: its own piece as its file holds it, or put together from the files of others. States that
/// the checkpoint does not hold begin at zero. Throws InputError as `form_for_ranks`, then for pieces that no file holds.
LoadedRanks load_ranks(Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                       const RankGraphs& run);

}  // namespace shardplan
