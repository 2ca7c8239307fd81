#pragma once

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

/// `asked` (of --cluster), else the cluster that the model names; of it the first `device_num` devices, in stand_alone
/// one. Throws InputError at the place in the model: no such cluster, a device_num that does not fit it, a `device`
/// that it does not have, a mesh of several devices in stand_alone.
JobCluster job_cluster(const Model& model, const std::optional<std::string>& asked);

}  // namespace shardplan
