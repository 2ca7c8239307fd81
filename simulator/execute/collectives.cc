#include "simulator/execute/collectives.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "layouts/redistribution/permutation.h"
#include "simulator/execute/padding.h"
#include "simulator/execute/shard_index.h"

// A step is written as a function of places: for each element that a device holds after it, which place of which shard
// it comes from. Devices with equal new shards and shared source memory have the same result, which is computed once.

namespace shardplan {
namespace {

double neutral_element(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return 0;
    case Reduction::kMax:
      return -std::numeric_limits<double>::infinity();
    case Reduction::kMin:
      return std::numeric_limits<double>::infinity();
  }
  return 0;
}

double reduced(Reduction reduction, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kPadding;  // a maximum would hide it
  switch (reduction) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
  }
  return a;
}

/// The index of an unsharded tensor; its places are positions in the whole tensor.
ShardIndex whole_index(const DeviceMesh& mesh, const Shape& shape) {
  return ShardIndex(TensorLayout::replicated(shape.size()), mesh, shape);
}

DeviceBuffer& at(DeviceBuffers& buffers, std::int64_t point) { return buffers[static_cast<std::size_t>(point)]; }
const std::vector<double>& at(const DeviceBuffers& buffers, std::int64_t point) {
  return buffers[static_cast<std::size_t>(point)];
}

void check_sizes(const DeviceBuffers& buffers, const ShardIndex& index, const DeviceMesh& mesh) {
  SHARDPLAN_CHECK(static_cast<std::int64_t>(buffers.size()) == mesh.num_devices());
  for (const DeviceBuffer& buffer : buffers) {
    SHARDPLAN_CHECK(static_cast<std::int64_t>(buffer.size()) == index.shard_size());
  }
}

/// The shards of each group along the layout's partial axes, reduced in the order of points: visit(group, shard,
/// values).
template <class Visit>
void for_each_reduced_shard(const DeviceBuffers& buffers, const ShardIndex& index, const TensorLayout& layout,
                            const DeviceMesh& mesh, Visit visit) {
  for (std::vector<std::int64_t>& group : mesh.groups(layout.partial)) {
    std::sort(group.begin(), group.end());
    std::vector<double> values = at(buffers, group[0]);
    for (std::size_t member = 1; member < group.size(); ++member) {
      const std::vector<double>& summand = at(buffers, group[member]);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = reduced(layout.reduction, values[i], summand[i]);
    }
    visit(index.shard(group[0]), values);
  }
}

/// The part of a partial element that one of `num_members` members holds.
double summand(double value, std::int64_t member, std::int64_t num_members, Reduction reduction, std::uint64_t draw) {
  if (num_members == 1) return value;
  const auto holder = static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(num_members));
  const double scale = std::abs(value) + 1;
  const auto offset = [&](std::int64_t of) {
    const double size = 1 + Random(mix(draw ^ static_cast<std::uint64_t>(of))).unit();
    return of % 2 == 0 ? size * scale : -size * scale;
  };
  if (reduction != Reduction::kSum) {
    if (member == holder) return value;
    return reduction == Reduction::kMax ? value - std::abs(offset(member)) : value + std::abs(offset(member));
  }
  if (member != holder) return offset(member);
  for (std::int64_t other = 0; other < num_members; ++other) {
    if (other != holder) value -= offset(other);
  }
  return value;
}

}  // namespace

DeviceBuffers scatter(const std::vector<double>& global, const Shape& shape, const TensorLayout& layout,
                      const DeviceMesh& mesh, std::uint64_t seed) {
  const ShardIndex index(layout, mesh, shape);
  const ShardIndex whole = whole_index(mesh, shape);
  SHARDPLAN_CHECK(static_cast<std::int64_t>(global.size()) == whole.shard_size());
  const std::int64_t num_members = num_pieces(layout.partial);
  DeviceBuffers buffers(static_cast<std::size_t>(mesh.num_devices()));
  AlikeDevices alike;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    const std::int64_t member = mesh.coordinate(point, layout.partial);
    const std::size_t first = alike.first_with({index.shard(point), member}, static_cast<std::size_t>(point));
    if (first != static_cast<std::size_t>(point)) {
      at(buffers, point) = buffers[first];
      continue;
    }
    std::vector<double> buffer(static_cast<std::size_t>(index.shard_size()), kPadding);
    for_each_element(index, index.shard(point), whole, [&](std::int64_t offset, const ShardIndex::Place& place) {
      const std::uint64_t draw = mix(seed ^ mix(static_cast<std::uint64_t>(place.offset)));
      buffer[static_cast<std::size_t>(offset)] =
          summand(global[static_cast<std::size_t>(place.offset)], member, num_members, layout.reduction, draw);
    });
    at(buffers, point) = std::move(buffer);
  }
  return buffers;
}

std::vector<double> gather(const DeviceBuffers& buffers, const Shape& shape, const TensorLayout& layout,
                           const DeviceMesh& mesh) {
  const ShardIndex index(layout, mesh, shape);
  const ShardIndex whole = whole_index(mesh, shape);
  check_sizes(buffers, index, mesh);
  std::vector<double> global(static_cast<std::size_t>(whole.shard_size()));
  std::vector<bool> is_known(static_cast<std::size_t>(index.num_shards()));
  for_each_reduced_shard(buffers, index, layout, mesh, [&](std::int64_t shard, const std::vector<double>& values) {
    if (is_known[static_cast<std::size_t>(shard)]) return;
    is_known[static_cast<std::size_t>(shard)] = true;
    for_each_element(index, shard, whole, [&](std::int64_t offset, const ShardIndex::Place& place) {
      global[static_cast<std::size_t>(place.offset)] = values[static_cast<std::size_t>(offset)];
    });
  });
  return global;
}

double largest_error(const DeviceBuffers& buffers, const std::vector<double>& global, const Shape& shape,
                     const TensorLayout& layout, const DeviceMesh& mesh) {
  const ShardIndex index(layout, mesh, shape);
  const ShardIndex whole = whole_index(mesh, shape);
  check_sizes(buffers, index, mesh);
  double largest = 0;
  for_each_reduced_shard(buffers, index, layout, mesh, [&](std::int64_t shard, const std::vector<double>& values) {
    for_each_element(index, shard, whole, [&](std::int64_t offset, const ShardIndex::Place& place) {
      const double error =
          std::abs(values[static_cast<std::size_t>(offset)] - global[static_cast<std::size_t>(place.offset)]);
      if (!std::isnan(largest) && !(error <= largest)) largest = error;  // a NaN stays
    });
  });
  return largest;
}

DeviceBuffers apply(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                    const DeviceBuffers& buffers) {
  const ShardIndex before(step.before, mesh, shape);
  const ShardIndex after(step.after, mesh, shape);
  check_sizes(buffers, before, mesh);
  DeviceBuffers result(buffers.size());
  AlikeDevices alike;
  // Applies `fill`, whose result depends on `key` and the shard, unless an earlier device has computed the same.
  const auto make = [&](std::int64_t point, AlikeDevices::Key key, const auto& fill) {
    key.push_back(after.shard(point));
    const std::size_t first = alike.first_with(std::move(key), static_cast<std::size_t>(point));
    if (first != static_cast<std::size_t>(point)) {
      at(result, point) = result[first];
      return;
    }
    std::vector<double> made(static_cast<std::size_t>(after.shard_size()), kPadding);
    for_each_element(after, after.shard(point), before, [&](std::int64_t offset, const ShardIndex::Place& place) {
      made[static_cast<std::size_t>(offset)] = fill(place);
    });
    at(result, point) = std::move(made);
  };
  const auto memory = [&](std::int64_t point) {
    return AlikeDevices::memory(buffers[static_cast<std::size_t>(point)]);
  };
  const auto memories = [&](const std::vector<std::int64_t>& group) {
    AlikeDevices::Key key;
    for (const std::int64_t point : group) key.push_back(memory(point));
    return key;
  };

  switch (step.kind) {
    case CollectiveKind::kSlice:
      for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
        const std::vector<double>& own = at(buffers, point);
        make(point, {memory(point), before.shard(point)}, [&](const ShardIndex::Place& place) {
          SHARDPLAN_CHECK(place.shard == before.shard(point));
          return own[static_cast<std::size_t>(place.offset)];
        });
      }
      return result;

    case CollectiveKind::kToPartial:
      // For a sum, one of the copies keeps the value; for a maximum all of them do. The shards of other devices are
      // filled with the neutral element.
      for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
        const std::vector<double>& own = at(buffers, point);
        const bool keeps =
            step.reduction != Reduction::kSum || step.from_dim.has_value() || mesh.coordinate(point, step.axes) == 0;
        make(point, {memory(point), before.shard(point), keeps ? 1 : 0}, [&](const ShardIndex::Place& place) {
          const bool is_own = keeps && place.shard == before.shard(point);
          return is_own ? own[static_cast<std::size_t>(place.offset)] : neutral_element(step.reduction);
        });
      }
      return result;

    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll: {
      std::vector<const std::vector<double>*> holder(static_cast<std::size_t>(before.num_shards()), nullptr);
      for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
        AlikeDevices::Key held = memories(group);
        for (const std::int64_t point : group) {
          holder[static_cast<std::size_t>(before.shard(point))] = &at(buffers, point);
          held.push_back(before.shard(point));
        }
        for (const std::int64_t point : group) {
          make(point, held, [&](const ShardIndex::Place& place) {
            const std::vector<double>* from = holder[static_cast<std::size_t>(place.shard)];
            SHARDPLAN_CHECK(from != nullptr);
            return (*from)[static_cast<std::size_t>(place.offset)];
          });
        }
        for (const std::int64_t point : group) holder[static_cast<std::size_t>(before.shard(point))] = nullptr;
      }
      return result;
    }

    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
      for (std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
        std::sort(group.begin(), group.end());
        for (const std::int64_t point : group) {
          SHARDPLAN_CHECK(before.shard(point) == before.shard(group[0]));
          make(point, memories(group), [&](const ShardIndex::Place& place) {
            SHARDPLAN_CHECK(place.shard == before.shard(point));
            double value = at(buffers, group[0])[static_cast<std::size_t>(place.offset)];
            for (std::size_t member = 1; member < group.size(); ++member) {
              value =
                  reduced(step.reduction, value, at(buffers, group[member])[static_cast<std::size_t>(place.offset)]);
            }
            return value;
          });
        }
      }
      return result;

    case CollectiveKind::kCollectivePermute: {
      const std::vector<std::int64_t> sources = permute_sources(step, mesh);
      for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
        const std::int64_t source = sources[static_cast<std::size_t>(point)];
        SHARDPLAN_CHECK(before.shard(source) == after.shard(point));
        for (std::size_t d = 0; d < shape.size(); ++d) {
          SHARDPLAN_CHECK(before.held(before.shard(source), d) == after.held(after.shard(point), d));
        }
        at(result, point) = buffers[static_cast<std::size_t>(source)];
      }
      return result;
    }
  }
  return result;
}

DeviceBuffers apply(const Redistribution& redistribution, const DeviceMesh& mesh, const Shape& shape,
                    DeviceBuffers buffers) {
  for (const CollectiveStep& step : redistribution.steps) buffers = apply(step, mesh, shape, buffers);
  return buffers;
}

}  // namespace shardplan
