#include <memory>

#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "report/catalogue_report.h"

namespace shardplan {

Command operators_command() {
  const auto name = std::make_shared<std::string>();
  Command command;
  command.name = "operators";
  command.topic = "Look up";
  command.summary = "List the operators and how each can be sharded, or show one";
  command.examples = {
      {"", "all operators, one per line"},
      {"MatMul", "one operator: its rule, attributes and gradient"},
      {"nn.Dense", "a built-in block"},
  };
  command.options = {{"",
                      {argument("NAME", name.get(), "an operator or a built-in block")
                           .optional()
                           .completed_by(Completion::kOperator)}}};
  command.action = [name] {
    print(name->empty() ? catalogue_report() : catalogue_report(*name));
    return kDone;
  };
  return command;
}

}  // namespace shardplan
