#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "model/model.h"

namespace shardplan {

/// The devices that a model is planned on, and notices about them.
struct JobCluster {
  Cluster cluster;
  std::vector<std::string> notices;
};

/// Devices requested on the command line, which override those of the model.
struct AskedDevices {
  std::optional<std::string> cluster;
  std::optional<std::int64_t> device_num;
  std::optional<std::string> rank_table;  // a file: servers, cards, and the order of ranks
};

/// The requested cluster, else the one that the model names, with the servers and ranks of the rank table, reduced to
/// the first `device_num` devices (in stand_alone to one). Throws InputError with the place in the model: there is no
/// such cluster; it does not have `device_num` devices, or HCCL does not support that number (1, 2, 4 or 8 cards of
/// one server, else 8 of each); it does not have this kind of `device`; a mesh of several devices in stand_alone.
JobCluster job_cluster(const Model& model, const AskedDevices& asked = {});

/// The first `device_num` devices of a cluster, as far as a job may have them; throws the same errors.
Cluster job_devices(const Cluster& cluster, std::int64_t device_num);

}  // namespace shardplan
