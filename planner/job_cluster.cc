#include "planner/job_cluster.h"

#include <string_view>

#include "costmodel/cluster/rank_table.h"

namespace shardplan {
namespace {

/// What `find` returns; its faults are at `place` where they have none of their own.
template <class Find>
Cluster found_at(const SourcePlace& place, const Find& find) {
  try {
    return find();
  } catch (const InputError& error) {
    throw named_at(place, error);
  }
}

/// MindSpore's name of a device's kind; empty where the device's own name does not say.
std::string_view kind_of(const ClusterDevice& device) {
  for (const std::string_view word : {"NVIDIA", "A100", "H100", "V100", "GPU"}) {
    if (device.name.find(word) != std::string::npos) return "GPU";
  }
  return device.name.starts_with("Ascend") ? "Ascend" : "";
}

/// MindSpore 1.7 shards blocks on Ascend only.
void check_compat(const JobCluster& job, const Model& model) {
  if (model.parallel.compat.empty() || kind_of(job.cluster.device) != "GPU") return;
  for (const GraphOperator& op : model.graph.operators()) {
    if (op.border_of.empty()) continue;
    throw InputError(model.cluster.place, "compat: mindspore-1.7: shard needs Ascend, but the devices of {} are {}",
                     job.cluster.name, job.cluster.device.name);
  }
}

void check_device(JobCluster& job, const ParallelOptions& parallel) {
  if (!parallel.device) return;
  const auto& [device, place] = *parallel.device;
  if (device == "CPU") {
    job.notices.push_back(fmt::format("device CPU: planned as if it were {}", job.cluster.device.name));
    return;
  }
  const std::string_view kind = kind_of(job.cluster.device);
  if (kind.empty() || kind == device) return;
  throw InputError(place, "device is {}, but the devices of {} are {}", device, job.cluster.name,
                   job.cluster.device.name);
}

}  // namespace

Cluster job_devices(const Cluster& cluster, std::int64_t device_num) {
  constexpr std::int64_t kOfServer = 8;  // device_num of MindSpore on Ascend
  const bool is_taken =
      device_num == 1 || device_num == 2 || device_num == kOfServer / 2 || device_num % kOfServer == 0;
  const std::int64_t of_node = cluster.num_devices() / cluster.levels.front().count;
  const bool may_be_taken = device_num > 0 && device_num <= kMostClusterDevices;  // else take_devices says so
  if (kind_of(cluster.device) == "Ascend" && of_node == kOfServer && may_be_taken && !is_taken) {
    throw InputError(std::vector<Diagnostic>{
        {{},
         fmt::format("device_num is {}; HCCL takes 1, 2, 4 or 8 devices of one server, or all 8 of each", device_num),
         fmt::format("nearest: {}", device_num < kOfServer ? (device_num < kOfServer / 2 ? "2 or 4" : "4 or 8")
                                                           : fmt::format("{} or {}", device_num / kOfServer * kOfServer,
                                                                         (device_num / kOfServer + 1) * kOfServer))}});
  }
  return take_devices(cluster, device_num);
}

JobCluster job_cluster(const Model& model, const AskedDevices& asked) {
  const ParallelOptions& parallel = model.parallel;
  JobCluster job;
  const SourcePlace place = asked.cluster ? SourcePlace{} : model.cluster.place;
  job.cluster = found_at(place, [&] { return read_cluster(asked.cluster.value_or(model.cluster.value)); });
  if (asked.rank_table) {
    job.cluster = found_at({*asked.rank_table, 0, 0},
                           [&] { return with_rank_table(job.cluster, read_rank_table(*asked.rank_table)); });
  }
  check_device(job, parallel);
  check_compat(job, model);
  if (asked.device_num) {
    job.cluster = job_devices(job.cluster, *asked.device_num);
  } else if (parallel.device_num) {
    const bool is_each_alone = model.last_worker && !parallel.workers;  // place: no collectives, so no HCCL
    job.cluster = found_at(parallel.device_num->place, [&] {
      const std::int64_t count = parallel.device_num->value;
      return is_each_alone ? take_devices(job.cluster, count) : job_devices(job.cluster, count);
    });
  }
  if (parallel.parallel_mode != ParallelMode::kStandAlone || model.local) return job;
  std::int64_t meshed = 1;
  for (const auto& [name, size] : parallel.mesh) meshed *= size;
  if (meshed > 1) {
    throw InputError(parallel.mesh_place, "mesh has {} devices, but parallel_mode stand_alone is one device", meshed);
  }
  const bool asks_for_more =
      asked.device_num ? *asked.device_num > 1 : parallel.device_num && parallel.device_num->value > 1;
  if (asks_for_more) job.notices.push_back("device_num is not used: parallel_mode stand_alone is one device");
  job.cluster = take_devices(job.cluster, 1);
  return job;
}

}  // namespace shardplan
