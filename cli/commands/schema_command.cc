#include <memory>

#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "model/model_schema.h"
#include "report/cluster_schema.h"
#include "report/local_report.h"
#include "report/plan_file/plan_json.h"

namespace shardplan {

Command schema_command() {
  const auto name = std::make_shared<std::string>();
  Command command;
  command.name = "schema";
  command.topic = "Look up";
  command.summary = "Print the JSON Schema of model files, cluster files or plan.json";
  command.examples = {{"model", "for completion and checking of model files in editors"},
                      {"cluster", "the same for cluster files"},
                      {"plan", "the format of plan.json"},
                      {"local-plan", "the format of plan.json of a model written per device"}};
  command.options = {
      {"", {argument("NAME", name.get(), "the kind of file", one_of({"model", "cluster", "plan", "local-plan"}))}}};
  command.action = [name] {
    print(*name == "model"     ? model_schema()
          : *name == "cluster" ? cluster_schema()
          : *name == "plan"    ? plan_schema()
                               : local_plan_schema());
    return kDone;
  };
  return command;
}

}  // namespace shardplan
