#pragma once

#include <string>

#include "costmodel/cluster/cluster.h"
#include "model/model.h"
#include "program/place_program.h"

namespace shardplan {

/// A job's devices divided among the workers of a model with `place`: worker w has ranks [w * n, (w + 1) * n).
struct WorkerGroups {
  int workers = 1;  // 1: not divided
  Cluster group;    // the devices of one worker
  std::string notice = {};
};

/// `workers` of the model, or one worker per device. In stand_alone, and without `place`, one worker has all devices.
/// Throws InputError with the place in the model: a rank that is no worker's, a number of workers that does not
/// divide the devices, or workers whose devices are linked differently.
WorkerGroups worker_groups(const Model& model, const Cluster& cluster);

/// The times of sends between workers with `devices` devices each, on the cluster's links.
SendTime send_time_of(const Cluster& cluster, std::int64_t devices);

}  // namespace shardplan
