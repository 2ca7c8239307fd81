#include "cli/commands/simulate_arguments.h"

#include "base/error.h"

namespace shardplan {

void check_saving(const SimulateArguments& arguments, bool is_training) {
  if (!arguments.save.empty() && !is_training) {
    throw InputError(SourcePlace{}, "--save {}: the model has no 'training', so there is nothing to save",
                     arguments.save);
  }
  check_prefix(arguments.prefix);
  const SimulateArguments untouched;
  const auto needs = [](bool is_given, bool has_folder, const char* option, const char* folder) {
    if (is_given && !has_folder) throw InputError(SourcePlace{}, "{} has no effect without {}", option, folder);
  };
  const bool saves = !arguments.save.empty();
  needs(arguments.integrated, saves, "--integrated", "--save FOLDER");
  needs(arguments.save_every != untouched.save_every, saves, "--save-every", "--save FOLDER");
  needs(arguments.keep_most != untouched.keep_most, saves, "--keep-checkpoint-max", "--save FOLDER");
  needs(arguments.prefix != untouched.prefix, saves || !arguments.load.empty(), "--prefix", "--save or --load FOLDER");
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
  say_notices(keep_last_checkpoints(arguments.save, arguments.prefix, arguments.keep_most, step));
}

}  // namespace shardplan
