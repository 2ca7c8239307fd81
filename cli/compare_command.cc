#include <deque>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/planning_options.h"
#include "cli/terminal.h"
#include "report/compare_report.h"

namespace shardplan {
namespace {

struct CompareArguments {
  PlanningArguments planning;
  bool all = false;
  bool json = false;
};

int run(const CompareArguments& arguments) {
  const std::unique_ptr<ModelPlanner> planning = make_planning(arguments.planning);
  std::deque<Plan> plans;
  std::vector<ComparedPlan> rows;
  const auto add = [&](std::string name, Level level, const std::string& search) {
    plans.push_back(planning->plan(level, search, interrupt_token()));
    const Plan& plan = plans.back();
    if (plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible) {
      rows.push_back(compared(std::move(name), plan));
    } else {
      notice(fmt::format("{}: no plan fits", name));
    }
  };
  for (const Level level : kLevels) {
    add(fmt::format("level {}", number_of(level)), level, planning->options().search);
  }
  add("propagation", planning->options().level, "propagation");
  rows.push_back(compared(planning->data_parallel()));
  rows.push_back(compared(planning->stand_alone()));
  print(arguments.json ? compare_json(rows) : compare_report(rows, {wants_colour(), arguments.all}));
  return kDone;
}

}  // namespace

Command compare_command() {
  const auto arguments = std::make_shared<CompareArguments>();
  Command command;
  command.name = "compare";
  command.topic = "Plan";
  command.summary = "Compare levels 0, 1 and 2, propagation, data parallelism and one device side by side";
  command.examples = {
      {"configs/gpt2-small.yaml", "what each objective costs, and in what the plans differ"},
      {"configs/gpt2-small.yaml --all", "with every operator that differs"},
      {"configs/mlp.yaml --cluster dgx-a100x2", "on another machine"},
  };
  command.options = planning_options(arguments->planning);
  command.options.insert(command.options.begin(), {"", {model_argument(arguments->planning)}});
  command.options.push_back({"Output",
                             {flag("--all", arguments->all, "list every operator that differs on a line of its own"),
                              flag("--json", arguments->json, "print one JSON document")}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
