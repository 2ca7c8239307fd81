#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardplan {

/// `shardplan cluster NAME`: what is understood of a cluster, or its rank table.
struct ClusterArguments {
  std::string cluster = "ascend-910";      // preset, NAMExN or file
  std::optional<std::int64_t> device_num;  // the first so many devices
  std::string capacity;                    // "16GiB" of usable memory; empty: the cluster's
  std::string rank_table;                  // file; empty: none
  std::string to;                          // "" or "rank-table"
  bool json = false;
  bool verbose = false;  // the sources in full
};

/// Results for standard output, notices for standard error.
struct CommandOutput {
  std::string results;
  std::string messages;
};

/// Throws InputError, also for an unknown `to`.
CommandOutput cluster_output(const ClusterArguments& arguments);

}  // namespace shardplan
