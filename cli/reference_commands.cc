// Commands that look something up: clusters, operators, schemas.

#include <memory>

#include "base/error.h"
#include "cli/cluster_command.h"
#include "cli/command.h"
#include "cli/operators_command.h"
#include "model/model_schema.h"
#include "report/plan_file/plan_json.h"

namespace shardplan {
namespace {

int show_cluster(const ClusterArguments& arguments) {
  const CommandOutput output = cluster_command(arguments);
  std::string messages = output.messages;
  if (messages.ends_with('\n')) messages.pop_back();
  if (!messages.empty()) notice(messages);
  print(output.results);
  return kDone;
}

int show_schema(const std::string& name) {
  if (name != "model" && name != "plan") throw InputError(SourcePlace{}, "schema {}: expected model or plan", name);
  print(name == "model" ? model_schema() : plan_schema());
  return kDone;
}

}  // namespace

void add_cluster_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("cluster", "What is understood of a cluster");
  const auto arguments = std::make_shared<ClusterArguments>();
  command->add_option("CLUSTER", arguments->cluster, "preset, NAMExN or file (ascend-910)");
  command->add_option("--device-num", arguments->device_num, "the first so many devices");
  command->add_option("--capacity", arguments->capacity, "memory per device, as 16GiB, instead of the cluster's");
  command->add_option("--rank-table", arguments->rank_table, "servers, cards and ranks from this file");
  command->add_option("--to", arguments->to, "rank-table: write one instead");
  command->add_flag("--json", arguments->json, "one JSON document");
  command->add_flag("--verbose", arguments->verbose, "where every number is from");
  command->callback([arguments, &action] { action = [arguments] { return show_cluster(*arguments); }; });
}

void add_operators_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("operators", "The catalogue of operators, or one of them");
  const auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "of an operator or a built-in block");
  command->callback([name, &action] {
    action = [name] {
      print(operators_command(*name));
      return kDone;
    };
  });
}

void add_schema_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("schema", "The JSON Schema of a kind of file");
  const auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "model or plan")->required();
  command->callback([name, &action] { action = [name] { return show_schema(*name); }; });
}

}  // namespace shardplan
