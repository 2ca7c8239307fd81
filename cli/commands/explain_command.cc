#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "graph/folded_names.h"
#include "report/plan/decisions_report.h"
#include "report/plan/explain_report.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostDecisions = 10;

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
  for (const OperatorId op : graph.operators().ids()) {
    if (folded_name(graph.operators()[op].name) == name) return op;  // as reports write all copies: layers.*.up.matmul
  }
  std::vector<std::string> names;
  for (const GraphOperator& op : graph.operators()) names.push_back(op.name);
  const std::string near = nearest_name(name, names);
  throw InputError(SourcePlace{}, "no operator '{}'{}", name, near.empty() ? "" : "; did you mean '" + near + "'?");
}

int run(const ExplainArguments& arguments) {
  const PreparedPlan planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits; see 'shardplan plan'");
    return kNoFeasiblePlan;
  }
  begin_phase("searching alternatives", PhaseEnd::kBySelf);
  const std::stop_token end = limited_token(arguments.planning.time_limit.value_or(0));
  const ExplainOptions options{wants_colour(), arguments.all};
  if (!arguments.name.empty()) {
    const OperatorId op = find_operator(*planned.plan.graph, arguments.name);
    const Explanation explanation = explain(*planned.planning, planned.plan, op, end);
    print(arguments.json ? explain_json(explanation) : explain_report(explanation, options));
    return kDone;
  }
  const std::vector<ExplainedDecision> explained =
      explain_costliest(*planned.planning, planned.plan, kMostDecisions, end, progress_sink());
  print(arguments.json ? decisions_json(planned.plan, explained) : decisions_report(planned.plan, explained, options));
  return kDone;
}

}  // namespace

Command explain_command() {
  const auto arguments = std::make_shared<ExplainArguments>();
  Command command;
  command.name = "explain";
  command.topic = "Plan";
  command.summary = "Explain why operators are sharded as they are, and what each alternative would cost";
  command.examples = {
      {"configs/mlp.yaml layer2.matmul", "plan the model, then explain one operator"},
      {"configs/mlp.yaml", "the ten most expensive decisions"},
      {"out/plan.json layer2.matmul", "the same for a plan written with --out"},
      {"out/plan.json layer2.matmul --all", "with every alternative"},
  };
  command.options = planning_options(arguments->planning);
  command.options.insert(
      command.options.begin(),
      {"",
       {model_argument(arguments->planning),
        argument("OPERATOR", &arguments->name,
                 "an operator's full name, or that of all its copies, as in reports (layers.*.up.matmul explains the "
                 "first one); without it, the ten most expensive decisions")
            .optional()
            .completed_by(Completion::kOperator)}});
  command.options.push_back({"Output",
                             {flag("--all", arguments->all, "list every alternative, not only the nearest"),
                              flag("--json", arguments->json, "print one JSON document")}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
