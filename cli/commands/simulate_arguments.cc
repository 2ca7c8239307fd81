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

namespace {

bool is_due(const SimulateArguments& arguments, std::int64_t step, std::int64_t last) {
  const bool is_of_interval = arguments.save_every > 0 && step % arguments.save_every == 0;
  return !arguments.save.empty() && (step == last || is_of_interval);
}

}  // namespace

void check_folders(const SimulateArguments& arguments, std::int64_t first, std::int64_t last) {
  for (std::int64_t step = first + 1; step <= last; ++step) {
    if (!is_due(arguments, step, last)) continue;
    check_replaceable(checkpoint_folder(arguments.save, arguments.prefix, step), kCheckpointFiles);
  }
}

void save_if_due(const SimulateArguments& arguments, std::int64_t step, std::int64_t last,
                 const std::function<void(const std::string& folder)>& save) {
  if (!is_due(arguments, step, last)) return;
  save(checkpoint_folder(arguments.save, arguments.prefix, step));
  if (arguments.keep_most == 0) return;
  for (const std::string& text : keep_last_checkpoints(arguments.save, arguments.prefix, arguments.keep_most, step)) {
    notice("notice: " + text);
  }
}

}  // namespace shardplan
