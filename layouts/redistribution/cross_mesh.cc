#include "layouts/redistribution/cross_mesh.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "layouts/index_digits.h"
#include "layouts/redistribution/permutation.h"

namespace shardplan {
namespace {

/// An axis is a digit of the rank, with a stride and a size. On the other mesh it is the digits within that range of
/// strides, if they end where it does.
std::optional<std::vector<AxisRef>> axes_on(const AxisRef& axis, const DeviceMesh& mesh, const DeviceMesh& other) {
  const std::int64_t low = mesh.stride(axis);
  const std::int64_t high = low * axis.size;
  std::vector<AxisRef> result;
  std::int64_t product = 1;
  for (std::size_t i = 0; i < other.axes().size(); ++i) {
    const AxisRef whole = other.whole(i);
    const std::int64_t stride = other.stride(whole);
    const std::int64_t from = std::max(low, stride);
    const std::int64_t to = std::min(high, stride * whole.size);
    if (from >= to) continue;
    if (from % stride != 0 || to % from != 0 || stride * whole.size % to != 0) return std::nullopt;
    result.push_back({whole.axis, stride * whole.size / to, to / from});
    product *= to / from;
  }
  if (product != axis.size) return std::nullopt;
  return result;
}

}  // namespace

std::int64_t device_at(const DeviceMesh& mesh, std::int64_t point) {
  return mesh.devices().empty() ? point : mesh.devices()[static_cast<std::size_t>(point)];
}

std::optional<TensorLayout> on_mesh(const TensorLayout& layout, const DeviceMesh& mesh, const DeviceMesh& other) {
  if (mesh.num_devices() != other.num_devices() || mesh.devices() != other.devices()) return std::nullopt;
  const auto express = [&](auto& axes) {
    std::vector<AxisRef> result;
    for (const AxisRef& axis : axes) {
      if (axis.size == 1) continue;
      const auto parts = axes_on(axis, mesh, other);
      if (!parts) return false;
      result.insert(result.end(), parts->begin(), parts->end());
    }
    axes = joined(result);
    return true;
  };
  TensorLayout result = layout;
  for (DimensionLayout& dimension : result.dimensions) {
    for (DimensionPart& part : dimension.parts) {
      if (!express(part.axes)) return std::nullopt;
    }
  }
  if (!express(result.partial)) return std::nullopt;
  return result;
}

TensorCells cells_of(const TensorLayout& from, const TensorLayout& to, const Shape& shape) {
  TensorCells cells;
  cells.from = from;
  cells.to = to;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<IndexDigit> ends[2] = {index_digits(from.dimensions[d], shape[d]),
                                       index_digits(to.dimensions[d], shape[d])};
    std::int64_t block = shape[d];
    for (const std::vector<IndexDigit>& digits : ends) {
      block = std::gcd(block, digits.empty() || digits.back().axis ? 1 : digits.back().size);
    }
    for (std::vector<IndexDigit>& digits : ends) {
      if (block > 1) digits.back().size /= block;
    }
    cells.shape.push_back(shape[d] / block);
    cells.elements *= block;
    cells.from.dimensions[d] = dimension_of_digits(joined(ends[0]));
    cells.to.dimensions[d] = dimension_of_digits(joined(ends[1]));
  }
  return cells;
}

std::int64_t BoxSend::num_elements() const {
  std::int64_t count = 1;
  for (const std::vector<std::int64_t>& list : positions) count *= static_cast<std::int64_t>(list.size());
  return count;
}

std::vector<BoxSend> plan_sends(const TensorLayout& from, const DeviceMesh& from_mesh, const TensorLayout& to,
                                const DeviceMesh& to_mesh, const Shape& shape) {
  SHARDPLAN_CHECK(num_pieces(from.partial) == 1);
  using Positions = std::vector<std::vector<std::int64_t>>;
  struct Source {
    std::vector<std::int64_t> devices;  // that hold the shard
    Positions held;
  };
  std::map<std::int64_t, Source> sources;  // by shard
  for (std::int64_t point = 0; point < from_mesh.num_devices(); ++point) {
    Source& source = sources[shard_number(from, from_mesh, point)];
    if (source.devices.empty()) source.held = held_indices(from, from_mesh, shape, point);
    source.devices.push_back(device_at(from_mesh, point));
  }
  std::map<std::int64_t, std::vector<std::int64_t>> receivers;  // of each shard, in the order of points
  std::map<std::int64_t, Positions> wanted;
  for (std::int64_t point = 0; point < to_mesh.num_devices(); ++point) {
    if (to.reduction == Reduction::kSum && to_mesh.coordinate(point, to.partial) != 0) continue;
    const std::int64_t shard = shard_number(to, to_mesh, point);
    receivers[shard].push_back(point);
    if (!wanted.contains(shard)) wanted[shard] = held_indices(to, to_mesh, shape, point);
  }
  std::vector<BoxSend> sends;
  for (const auto& [shard, points] : receivers) {
    for (const auto& [number, source] : sources) {
      BoxSend send;
      bool is_empty = false;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        std::vector<std::int64_t> common;
        std::set_intersection(source.held[d].begin(), source.held[d].end(), wanted[shard][d].begin(),
                              wanted[shard][d].end(), std::back_inserter(common));
        is_empty = is_empty || common.empty();
        send.positions.push_back(std::move(common));
      }
      if (is_empty) continue;
      std::size_t turn = static_cast<std::size_t>(shard);  // so that copies take turns over the shards too
      for (const std::int64_t point : points) {
        send.to_device = device_at(to_mesh, point);
        const auto own = std::find(source.devices.begin(), source.devices.end(), send.to_device);
        send.from_device = own != source.devices.end() ? *own : source.devices[turn++ % source.devices.size()];
        sends.push_back(send);
      }
    }
  }
  std::stable_sort(sends.begin(), sends.end(), [](const BoxSend& a, const BoxSend& b) {
    return std::pair(a.to_device, a.from_device) < std::pair(b.to_device, b.from_device);
  });
  return sends;
}

}  // namespace shardplan
