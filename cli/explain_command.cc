#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/planning_options.h"
#include "report/explain_report.h"

namespace shardplan {
namespace {

struct ExplainArguments {
  PlanningArguments planning;
  std::string name;
  bool all = false;
  bool json = false;
};

OperatorId find_operator(const OperatorGraph& graph, const std::string& name) {
  if (const std::optional<OperatorId> op = graph.find_operator(name)) return *op;
  if (const std::optional<TensorId> tensor = graph.find_tensor(name)) {
    if (graph.tensor(*tensor).producer) return *graph.tensor(*tensor).producer;
  }
  std::vector<std::string> names;
  for (const GraphOperator& op : graph.operators()) names.push_back(op.name);
  const std::string near = nearest_name(name, names);
  throw InputError(SourcePlace{}, "no operator '{}'{}", name, near.empty() ? "" : "; did you mean '" + near + "'?");
}

int run(const ExplainArguments& arguments) {
  const PlannedModel planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits; see 'shardplan plan'");
    return kNoFeasiblePlan;
  }
  Explanation explanation;
  explanation.plan = &planned.plan;
  explanation.op = find_operator(*planned.plan.graph, arguments.name);
  std::vector<Strategy> strategies = planned.planning->alternatives(explanation.op);
  std::erase(strategies, planned.plan.strategies[explanation.op]);
  if (!strategies.empty()) {
    const auto found =
        planned.planning->forced(planned.plan.options.level, explanation.op, strategies, interrupt_token());
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      if (found[i]) explanation.alternatives.push_back({strategies[i], found[i]->time, found[i]->peak, found[i]->fits});
    }
  }
  print(arguments.json ? explain_json(explanation) : explain_report(explanation, {wants_colour(), arguments.all}));
  return kDone;
}

}  // namespace

void add_explain_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("explain", "Why an operator is cut as it is, and what else would cost");
  const auto arguments = std::make_shared<ExplainArguments>();
  add_planning_options(*command, arguments->planning);
  command->add_option("OPERATOR", arguments->name, "full name, as in reports")->required();
  command->add_flag("--all", arguments->all, "every alternative");
  command->add_flag("--json", arguments->json, "one JSON document");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace shardplan
