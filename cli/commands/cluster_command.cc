#include <memory>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/rank_table.h"
#include "report/cluster_report.h"

namespace shardplan {
namespace {

struct ClusterArguments {
  std::string cluster = "ascend-910";      // preset, NAMExN or file
  std::optional<std::int64_t> device_num;  // use only the first devices, this many
  std::optional<std::string> capacity;     // "16GiB" of usable memory, instead of the cluster's
  std::string rank_table;                  // file; empty: none
  std::string to;                          // "", "yaml" or "rank-table"
  bool json = false;
  bool verbose = false;  // list all sources
};

int show(const ClusterArguments& arguments) {
  Cluster cluster = read_cluster(arguments.cluster);
  if (!arguments.rank_table.empty()) cluster = with_rank_table(cluster, read_rank_table(arguments.rank_table));
  if (arguments.device_num) cluster = take_devices(cluster, *arguments.device_num);
  if (arguments.capacity) cluster = with_capacity(cluster, parse_capacity(*arguments.capacity));

  say_notices(cluster.notices);
  if (arguments.to == "rank-table") {
    notice("notice: server_id and device_ip are placeholders; replace them by the addresses of your servers");
    print(write_rank_table(cluster));
  } else if (arguments.to == "yaml") {
    print(write_cluster(cluster));
  } else {
    print(arguments.json ? cluster_json(cluster) : cluster_summary(cluster, arguments.verbose));
  }
  return kDone;
}

}  // namespace

Command cluster_command() {
  const auto arguments = std::make_shared<ClusterArguments>();
  Command command;
  command.name = "cluster";
  command.topic = "Look up";
  command.summary = "Show what is assumed about a cluster: devices, memory, links, and the sources";
  command.examples = {
      {"dgx-a100x8", "eight nodes of eight A100"},
      {"dgx-a100x8 --verbose", "with the source of every number"},
      {"dgx-a100x8 --to yaml", "as a cluster file, to edit and pass to --cluster"},
      {"ascend-910x2 --to rank-table", "a rank table to fill in"},
  };
  command.options = {
      {"",
       {argument("CLUSTER", &arguments->cluster, "a preset, with xN for N nodes, or a cluster file")
            .optional()
            .completed_by(Completion::kCluster)}},
      {"Selection",
       {option("--device-num", "N", &arguments->device_num, "only the first N devices"),
        option("--capacity", "BYTES", &arguments->capacity,
               "usable memory per device, as 16GiB, instead of the cluster's"),
        option("--rank-table", "FILE", &arguments->rank_table, "servers, devices and ranks from this file")
            .completed_by(Completion::kFile)}},
      {"Output",
       {option("--to", "FORM", &arguments->to, "print it in another form", one_of({"yaml", "rank-table"})),
        flag("--json", arguments->json, "print one JSON document"),
        flag("--verbose", arguments->verbose, "print the source of every number")}},
  };
  command.action = [arguments] { return show(*arguments); };
  return command;
}

}  // namespace shardplan
