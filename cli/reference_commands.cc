// Commands that look something up: clusters, operators, schemas.

#include <memory>

#include "cli/cluster_output.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/operators_text.h"
#include "cli/terminal.h"
#include "model/model_schema.h"
#include "report/cluster_schema.h"
#include "report/plan_file/plan_json.h"

namespace shardplan {
namespace {

int show_cluster(const ClusterArguments& arguments) {
  const CommandOutput output = cluster_output(arguments);
  std::string messages = output.messages;
  if (messages.ends_with('\n')) messages.pop_back();
  if (!messages.empty()) notice(messages);
  print(output.results);
  return kDone;
}

int show_schema(const std::string& name) {
  print(name == "model" ? model_schema() : name == "cluster" ? cluster_schema() : plan_schema());
  return kDone;
}

}  // namespace

Command cluster_command() {
  const auto arguments = std::make_shared<ClusterArguments>();
  Command command;
  command.name = "cluster";
  command.topic = "Look up";
  command.summary = "Show what is assumed of a cluster: devices, memory, links, and the sources";
  command.examples = {
      {"dgx-a100x8", "eight nodes of eight A100"},
      {"dgx-a100x8 --verbose", "with the source of every number"},
      {"ascend-910x2 --to rank-table", "a rank table to fill in"},
  };
  command.options = {
      {"",
       {argument("CLUSTER", &arguments->cluster, "a preset, with xN for N nodes, or a cluster file")
            .optional()
            .completed_by(Completion::kCluster)}},
      {"What is taken of it",
       {option("--device-num", "N", &arguments->device_num, "only the first N devices"),
        option("--capacity", "BYTES", &arguments->capacity, "memory per device, as 16GiB, instead of the cluster's"),
        option("--rank-table", "FILE", &arguments->rank_table, "servers, devices and ranks from this file")
            .completed_by(Completion::kFile)}},
      {"Output",
       {option("--to", "FORM", &arguments->to, "print it in another form", one_of({"rank-table"})),
        flag("--json", arguments->json, "print one JSON document"),
        flag("--verbose", arguments->verbose, "print the source of every number")}},
  };
  command.action = [arguments] { return show_cluster(*arguments); };
  return command;
}

Command operators_command() {
  const auto name = std::make_shared<std::string>();
  Command command;
  command.name = "operators";
  command.topic = "Look up";
  command.summary = "List the operators and how each may be sharded, or show one of them";
  command.examples = {
      {"", "all operators, one a line"},
      {"MatMul", "one operator: its rule, attributes and gradient"},
      {"nn.Dense", "a built-in block"},
  };
  command.options = {{"",
                      {argument("NAME", name.get(), "an operator or a built-in block")
                           .optional()
                           .completed_by(Completion::kOperator)}}};
  command.action = [name] {
    print(operators_text(*name));
    return kDone;
  };
  return command;
}

Command schema_command() {
  const auto name = std::make_shared<std::string>();
  Command command;
  command.name = "schema";
  command.topic = "Look up";
  command.summary = "Print the JSON Schema of model files, cluster files or plan.json";
  command.examples = {{"model", "for an editor that completes and checks model files"},
                      {"cluster", "the same for cluster files"},
                      {"plan", "the form of plan.json"}};
  command.options = {{"", {argument("NAME", name.get(), "the kind of file", one_of({"model", "cluster", "plan"}))}}};
  command.action = [name] { return show_schema(*name); };
  return command;
}

}  // namespace shardplan
