#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/commands/planning_options.h"
#include "cli/terminal.h"
#include "simulator/checkpoint/checkpoint.h"
#include "simulator/checkpoint/checkpoint_folder.h"

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
  std::int64_t save_every = 0;  // steps; 0: only at the end
  std::int64_t keep_most = 5;
};

/// Throws InputError for `--save` of a model that is not trained, for a prefix that is not a plain name, and for options
/// of saving without a folder.
void check_saving(const SimulateArguments& arguments, bool is_training);

/// The initial state of a run with `--load`: `load(checkpoint)` returns values and notices; the step comes from the
/// checkpoint, and so does the seed unless given. Throws InputError as `load`.
template <class Options, class Load>
void begin_with_checkpoint(const SimulateArguments& arguments, bool is_training, Options& options, const Load& load) {
  if (arguments.load.empty()) return;
  Checkpoint checkpoint(find_checkpoint(arguments.load, arguments.prefix));
  auto loaded = load(checkpoint);
  for (const std::string& text : loaded.notices) notice("notice: " + text);
  options.loaded = std::move(loaded.values);
  if (!arguments.planning.seed) options.seed = checkpoint.form().seed;
  if (is_training) options.first_step = checkpoint.form().step;
}

/// Throws InputError if the folder of a checkpoint that is due after steps above `first` and up to `last` holds other
/// files, which saving would delete: known before the run rather than in the middle of it.
void check_folders(const SimulateArguments& arguments, std::int64_t first, std::int64_t last);

/// After step `step` of a run whose last step is `last`: calls `save` with the folder of a checkpoint if one is due,
/// and removes those beyond `--keep-checkpoint-max`; prints a notice for each that could not be removed.
void save_if_due(const SimulateArguments& arguments, std::int64_t step, std::int64_t last,
                 const std::function<void(const std::string& folder)>& save);

}  // namespace shardplan
