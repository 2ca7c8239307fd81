#include "report/text/strategy_table.h"

#include <fmt/format.h>

#include "report/text/strategy_text.h"

namespace shardplan {

std::string_view strategy_origin(const Plan& plan, OperatorId op) {
  if (op.value() < plan.is_user_strategy.size() && plan.is_user_strategy[op]) return "user";
  return plan.graph->operators()[op].is_data_parallel ? "default" : "search";
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
    text +=
        fmt::format("{}  {} -> {}  {}\n", plan.graph->operators()[id].name, inputs, results, strategy_origin(plan, id));
  }
  return text;
}

}  // namespace shardplan
