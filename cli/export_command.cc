#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/planning_options.h"
#include "report/export/export.h"

namespace shardplan {
namespace {

struct ExportArguments {
  PlanningArguments planning;
  std::string target;
};

int run(const ExportArguments& arguments) {
  const PlannedModel planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits; see 'shardplan plan'");
    return kNoFeasiblePlan;
  }
  const ExportedText exported = export_plan(planned.plan, arguments.target);
  print(exported.text);
  const std::size_t count = exported.cannot_say.size();
  if (count > 0) notice(fmt::format("{} thing{} {} cannot express", count, count == 1 ? "" : "s", arguments.target));
  return kDone;
}

}  // namespace

void add_export_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("export", "A plan in another framework's words");
  const auto arguments = std::make_shared<ExportArguments>();
  add_planning_options(*command, arguments->planning);
  command->add_option("--to", arguments->target, "mindspore, jax, dtensor or shardy")->required();
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace shardplan
