#include "simulator/execute/sends.h"

#include <map>

#include "base/error.h"
#include "simulator/execute/shard_index.h"

namespace shardplan {
namespace {

std::map<std::int64_t, std::int64_t> points_of_devices(const DeviceMesh& mesh) {
  std::map<std::int64_t, std::int64_t> points;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) points[device_at(mesh, point)] = point;
  return points;
}

}  // namespace

DeviceBuffers apply(const std::vector<BoxSend>& sends, const TensorLayout& from, const DeviceMesh& from_mesh,
                    const TensorLayout& to, const DeviceMesh& to_mesh, const Shape& shape,
                    const DeviceBuffers& buffers) {
  const ShardIndex source(from, from_mesh, shape);
  const ShardIndex target(to, to_mesh, shape);
  SHARDPLAN_CHECK(static_cast<std::int64_t>(buffers.size()) == from_mesh.num_devices());
  const auto from_points = points_of_devices(from_mesh);
  const auto to_points = points_of_devices(to_mesh);
  std::vector<std::vector<double>> shards(static_cast<std::size_t>(to_mesh.num_devices()),
                                          std::vector<double>(static_cast<std::size_t>(target.shard_size()), 0));
  for (const BoxSend& send : sends) {
    const std::int64_t sender = from_points.at(send.from_device);
    const std::int64_t receiver = to_points.at(send.to_device);
    const std::vector<double>& memory = buffers[static_cast<std::size_t>(sender)];
    std::vector<double>& shard = shards[static_cast<std::size_t>(receiver)];
    for (std::int64_t element = 0; element < send.num_elements(); ++element) {
      ShardIndex::Place there, here;
      std::int64_t rest = element;
      for (std::size_t d = shape.size(); d-- > 0;) {
        const auto count = static_cast<std::int64_t>(send.positions[d].size());
        const std::int64_t position = send.positions[d][static_cast<std::size_t>(rest % count)];
        rest /= count;
        const ShardIndex::Place& a = source.place(d, position);
        const ShardIndex::Place& b = target.place(d, position);
        there = {there.shard + a.shard, there.offset + a.offset};
        here = {here.shard + b.shard, here.offset + b.offset};
      }
      SHARDPLAN_CHECK(there.shard == source.shard(sender) && here.shard == target.shard(receiver));
      shard[static_cast<std::size_t>(here.offset)] = memory[static_cast<std::size_t>(there.offset)];
    }
  }
  return DeviceBuffers(shards.begin(), shards.end());
}

}  // namespace shardplan
