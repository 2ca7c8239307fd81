#include "planner/worker_groups.h"

#include <vector>

#include "costmodel/send_costs.h"

namespace shardplan {
namespace {

/// Whether every `devices` consecutive ranks are linked among themselves like the first ones.
bool are_alike(const Cluster& cluster, std::int64_t devices) {
  if (devices > 1 && !cluster.position_of_rank.empty()) return false;
  std::int64_t part = 1;
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    part *= cluster.levels[level].count;
    if (part % devices != 0 && devices % part != 0) return false;
  }
  return true;
}

}  // namespace

WorkerGroups worker_groups(const Model& model, const Cluster& cluster) {
  WorkerGroups groups;
  groups.group = cluster;
  if (!model.last_worker) return groups;
  const ParallelOptions& parallel = model.parallel;
  if (parallel.parallel_mode == ParallelMode::kStandAlone) {
    groups.notice = "place has no effect in parallel_mode stand_alone: one device runs everything";
    return groups;
  }
  const std::int64_t devices = cluster.num_devices();
  const std::int64_t workers = parallel.workers ? parallel.workers->value : devices;
  const auto& [last, place] = *model.last_worker;
  if (last >= workers) {
    throw InputError(std::vector<Diagnostic>{
        {place, fmt::format("place: rank is {}, but the workers are 0 to {}", last, workers - 1),
         parallel.workers ? fmt::format("workers: {} has one of rank {}", last + 1, last)
                          : fmt::format("each of the {} devices is a worker; device_num: {} has one of rank {}",
                                        devices, last + 1, last)}});
  }
  const SourcePlace& asked = parallel.workers ? parallel.workers->place : place;
  if (devices % workers != 0) {
    throw InputError(asked, "workers is {}, which does not divide the {} devices of {}", workers, devices,
                     cluster.name);
  }
  if (!are_alike(cluster, devices / workers)) {
    throw InputError(asked, "workers is {}: the {} devices of one are linked otherwise than those of another on {}",
                     workers, devices / workers, cluster.name);
  }
  groups.workers = static_cast<int>(workers);
  if (workers > 1) groups.group = take_devices(cluster, devices / workers);
  if (workers > 1 && devices == workers) groups.group.position_of_rank.clear();
  return groups;
}

SendTime send_time_of(const Cluster& cluster, std::int64_t devices) {
  return [&cluster, devices](int from, int to, Bytes bytes) {
    std::vector<DeviceSend> sends;
    for (std::int64_t i = 0; i < devices; ++i) sends.push_back({from * devices + i, to * devices + i, bytes});
    return sends_time(cluster, sends);
  };
}

}  // namespace shardplan
