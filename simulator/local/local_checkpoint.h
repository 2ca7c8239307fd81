#pragma once

#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"
#include "simulator/local/local_simulation.h"

namespace shardplan {

/// The form of a checkpoint of the parameters and states that a model written per device stores between steps: one file
/// per rank, which states where its pieces begin. Numbers are F64, so that a run continues exactly.
CheckpointForm local_form(const std::vector<std::shared_ptr<const Model>>& ranks, const RankGraphs& run,
                          std::int64_t step, std::uint64_t seed);

/// Writes the stored values of the ranks at the end of a step; `form` is `local_form`. Throws InputError.
void save_ranks(const std::string& folder, const CheckpointForm& form, const RankGraphs& run,
                const LocalExecutor& executor);

/// The form that redistributes any checkpoint, of a plan or of ranks, to the ranks of a model: each rank's pieces of
/// its parameters and states, in the checkpoint's dtypes. If each rank has its own parameter, a stored tensor of its
/// shape also fits; all ranks then start with its values. States missing in the checkpoint are left out; `notices`
/// names them. Throws InputError with all faults: missing parameters, other shapes.
CheckpointForm form_for_ranks(const Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                              const RankGraphs& run, std::vector<std::string>& notices);

struct LoadedRanks {
  RankValues values;
  std::vector<std::string> notices;
};
/// Each rank's initial values: its own piece from its file, or assembled from the files of others. States missing in
/// the checkpoint start at zero, master copies as the loaded parameters. Throws InputError as `form_for_ranks`, then
/// for pieces that no file holds.
LoadedRanks load_ranks(Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                       const RankGraphs& run);

}  // namespace shardplan
