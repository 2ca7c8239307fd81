#pragma once

#include <string>

#include "costmodel/cluster/cluster.h"
#include "model/model.h"
#include "program/place_program.h"

namespace shardplan {

/// The devices of a job divided among the workers of a model with `place`: worker w has ranks [w * n, (w + 1) * n).
struct WorkerGroups {
  int workers = 1;  // 1: nothing is divided
  Cluster group;    // the devices of one worker
  std::string notice = {};
};

/// `workers` of the model, or one worker for each device. Throws InputError at the place in the model: a rank that is no
/// worker's, workers that do not divide the devices, or whose devices are linked otherwise than those of others. In
/// stand_alone, and without `place`, one worker has all devices.
WorkerGroups worker_groups(const Model& model, const Cluster& cluster);

/// What sends between workers with `devices` devices each take on the cluster's links.
SendTime send_time_of(const Cluster& cluster, std::int64_t devices);

}  // namespace shardplan
