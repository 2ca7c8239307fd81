#include "cli/commands/simulate_arguments.h"

#include "base/error.h"

namespace shardplan {

void check_saving(const SimulateArguments& arguments, bool is_training) {
  if (!arguments.save.empty() && !is_training) {
    throw InputError(SourcePlace{}, "--save {}: the model has no 'training', so there is nothing to save",
                     arguments.save);
  }
  check_prefix(arguments.prefix);
}

void save_if_due(const SimulateArguments& arguments, std::int64_t step, std::int64_t last,
                 const std::function<void(const std::string& folder)>& save) {
  const bool is_due = step == last || (arguments.save_every > 0 && step % arguments.save_every == 0);
  if (arguments.save.empty() || !is_due) return;
  save(checkpoint_folder(arguments.save, arguments.prefix, step));
  if (arguments.keep_most > 0) keep_last_checkpoints(arguments.save, arguments.prefix, arguments.keep_most);
}

}  // namespace shardplan
