#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "report/export/export.h"

namespace shardplan {
namespace {

struct ExportArguments {
  PlanningArguments planning;
  std::string target;
};

int run(const ExportArguments& arguments) {
  const PreparedPlan planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits; see 'shardplan plan'");
    return kNoFeasiblePlan;
  }
  const ExportedText exported = export_plan(planned.plan, arguments.target, planned.planning.get());
  print(exported.text);
  const std::size_t count = exported.cannot_say.size();
  if (count > 0) notice(fmt::format("{} thing{} {} cannot express", count, count == 1 ? "" : "s", arguments.target));
  if (!exported.nearest.empty()) notice(exported.nearest);
  return kDone;
}

}  // namespace

Command export_command() {
  const auto arguments = std::make_shared<ExportArguments>();
  Command command;
  command.name = "export";
  command.topic = "Use a plan";
  command.summary = "Write a plan for another framework";
  command.description =
      "Whatever the framework cannot express becomes a comment at its place in the output, and a notice counts these "
      "comments. For frameworks with one setting for the whole model (megatron, torchtitan, deepspeed, vllm) the "
      "nearest plan that they can run is written, with its cost next to that of this plan.";
  command.examples = {
      {"out/plan.json --to jax", "a mesh and PartitionSpecs"},
      {"configs/mlp.yaml --to mindspore", "plan the model, then print Layout and shard calls"},
  };
  command.options = planning_options(arguments->planning);
  command.options.insert(
      command.options.begin(),
      {"",
       {model_argument(arguments->planning),
        option("--to", "FRAMEWORK", &arguments->target, "the framework", one_of(export_targets())).required()}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
