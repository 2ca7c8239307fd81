#include "cli/cluster_output.h"

#include "base/error.h"
#include "costmodel/cluster.h"
#include "costmodel/rank_table.h"
#include "report/cluster_report.h"

namespace shardplan {

CommandOutput cluster_output(const ClusterArguments& arguments) {
  if (!arguments.to.empty() && arguments.to != "rank-table") {
    throw InputError(SourcePlace{}, "--to {}: expected rank-table", arguments.to);
  }
  Cluster cluster = read_cluster(arguments.cluster);
  if (!arguments.rank_table.empty()) cluster = with_rank_table(cluster, read_rank_table(arguments.rank_table));
  if (arguments.device_num) cluster = take_devices(cluster, *arguments.device_num);
  if (!arguments.capacity.empty()) cluster = with_capacity(cluster, arguments.capacity);

  CommandOutput output;
  for (const std::string& notice : cluster.notices) output.messages += "notice: " + notice + "\n";
  if (arguments.to == "rank-table") {
    output.results = write_rank_table(cluster);
    output.messages += "notice: server_id and device_ip are placeholders; put in the addresses of your servers\n";
  } else if (arguments.json) {
    output.results = cluster_json(cluster);
  } else {
    output.results = cluster_summary(cluster);
    if (!arguments.verbose) return output;
    for (const auto& [key, source] : cluster.sources) output.results += fmt::format("    {}: {}\n", key, source);
  }
  return output;
}

}  // namespace shardplan
