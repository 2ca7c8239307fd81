#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "model/model.h"

namespace shardplan {

/// The devices that a model is planned on, and what is worth a notice about them.
struct JobCluster {
  Cluster cluster;
  std::vector<std::string> notices;
};

/// What the command line says of the devices, in the place of what the model says.
struct AskedDevices {
  std::optional<std::string> cluster;
  std::optional<std::int64_t> device_num;
  std::optional<std::string> rank_table;  // a file: servers, cards, and which rank stands where
};

/// The cluster that is asked for, else the one that the model names, with the servers and ranks of the rank table; of it
/// the first `device_num` devices, in stand_alone one. Throws InputError at the place in the model: no such cluster, a
/// device_num that does not fit it, or that HCCL does not take (1, 2, 4 or 8 cards of one server, else 8 of each), a
/// `device` that it does not have, a mesh of several devices in stand_alone.
JobCluster job_cluster(const Model& model, const AskedDevices& asked = {});

/// The first `device_num` of a cluster's devices as a job may have them; the same errors.
Cluster job_devices(const Cluster& cluster, std::int64_t device_num);

}  // namespace shardplan
