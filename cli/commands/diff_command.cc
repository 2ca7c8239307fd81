#include <memory>

#include "cli/commands/commands.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "report/plan/plan_diff.h"

namespace shardplan {
namespace {

struct DiffArguments {
  std::string before;
  std::string after;
  bool all = false;
  bool json = false;
};

PreparedPlan load(const std::string& path) {
  PlanningArguments arguments;
  arguments.model = path;
  return plan_or_load(arguments);
}

int run(const DiffArguments& arguments) {
  const PreparedPlan before = load(arguments.before);
  const PreparedPlan after = load(arguments.after);
  for (const auto& [path, planned] : {std::pair{&arguments.before, &before}, std::pair{&arguments.after, &after}}) {
    if (planned->is_found()) continue;
    notice(fmt::format("{}: no plan fits; see 'shardplan plan {}'", *path, *path));
    return kNoFeasiblePlan;
  }
  const DiffOptions options{arguments.before, arguments.after, wants_colour(), arguments.all};
  print(arguments.json ? diff_json(before.plan, after.plan, options) : diff_report(before.plan, after.plan, options));
  return kDone;
}

}  // namespace

Command diff_command() {
  const auto arguments = std::make_shared<DiffArguments>();
  Command command;
  command.name = "diff";
  command.topic = "Plan";
  command.summary = "Show where two plans differ, and what that costs in time and memory";
  command.examples = {
      {"out/plan.json memory/plan.json", "two plans written with --out"},
      {"out/plan.json memory/plan.json --all", "with every difference"},
      {"configs/mlp.yaml out/plan.json", "the model planned now, compared with an earlier plan"},
  };
  command.options = {{"",
                      {argument("BEFORE", &arguments->before, "a plan.json, or a model file, which is planned")
                           .completed_by(Completion::kFile),
                       argument("AFTER", &arguments->after, "the plan to compare with: a plan.json, or a model file")
                           .completed_by(Completion::kFile)}},
                     {"Output",
                      {flag("--all", arguments->all, "list every difference, not only the largest"),
                       flag("--json", arguments->json, "print one JSON document")}}};
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
