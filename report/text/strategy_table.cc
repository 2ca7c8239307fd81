#include "report/text/strategy_table.h"

#include <fmt/format.h>

#include "report/text/strategy_text.h"

namespace shardplan {

std::string_view strategy_origin(const Plan& plan, OperatorId op) {
  if (op.value() < plan.is_user_strategy.size() && plan.is_user_strategy[op]) return "user";
  if (!followed_name(plan, op).empty()) return "follows";
  const bool is_by_mode = op.value() < plan.is_by_mode.size() && plan.is_by_mode[op];
  return is_by_mode || plan.graph->operators()[op].is_data_parallel ? "default" : "search";
}

std::string followed_name(const Plan& plan, OperatorId op) {
  const GraphOperator& info = plan.graph->operators()[op];
  if (info.is_copy) return plan.graph->operators()[*info.forward].name;
  if (op.value() >= plan.is_by_mode.size() || !plan.is_by_mode[op] || info.pass == Pass::kForward) return "";
  if (info.forward) return plan.graph->operators()[*info.forward].name;
  return info.parameter ? plan.graph->tensor(*info.parameter).name : "";
}

std::string strategy_table(const Plan& plan) {
  std::string text;
  for (const OperatorId id : plan.graph->operators().ids()) {
    const Operation& operation = plan.graph->operation(id);
    const Strategy& strategy = plan.strategies[id];
    std::string inputs;
    if (const auto tuples = input_tuples(operation, strategy, plan.mesh)) {
      inputs = tuple_text(*tuples);
    } else {
      for (std::size_t i = 0; i < operation.operands.size(); ++i) {
        if (i > 0) inputs += ", ";
        inputs += to_string(operand_layout(operation, strategy, plan.mesh, i), plan.mesh);
      }
    }
    std::string results;
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
      if (i > 0) results += ", ";
      results += to_string(result_layout(operation, strategy, plan.mesh, i), plan.mesh);
    }
    const std::string followed = followed_name(plan, id);
    text += fmt::format("{}  {} -> {}  {}{}\n", plan.graph->operators()[id].name, inputs, results,
                        strategy_origin(plan, id), followed.empty() ? "" : " " + followed);
  }
  return text;
}

}  // namespace shardplan
