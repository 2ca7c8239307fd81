#pragma once

#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "base/shared_value.h"

namespace shardplan {

/// What one simulated device holds of one tensor. Copies share their memory until one of them is written to, which then
/// has memory of its own: no device ever sees what another one writes. So 64 devices that hold one replicated weight take
/// the memory of one, and what is computed from shared buffers in the same way need be computed once only.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::vector<double> values) : values_(std::move(values)) {}  // NOLINT: it is one
  DeviceBuffer(std::initializer_list<double> values) : values_(std::vector(values)) {}

  operator const std::vector<double>&() const { return *values_; }  // NOLINT: it is one
  std::size_t size() const { return values_->size(); }
  bool empty() const { return values_->empty(); }
  double operator[](std::size_t i) const { return (*values_)[i]; }
  double front() const { return values_->front(); }
  auto begin() const { return values_->begin(); }
  auto end() const { return values_->end(); }
  /// The same for buffers that share their memory, while they live.
  const double* data() const { return values_->data(); }

  /// To be written to. The reference lasts until the buffer is copied.
  std::vector<double>& edit() { return values_.edit(); }

  bool operator==(const DeviceBuffer&) const = default;

 private:
  SharedValue<std::vector<double>> values_;
};

/// The memories of the simulated devices that hold one tensor: by point of the mesh, each shard row-major. Numbers are
/// float64 whatever the tensor's dtype; the executor rounds them where a run is to be in float32. Behind the shorter shards of
/// an uneven dimension (layouts/uneven.h) buffers are padded with NaN, which every step writes again.
using DeviceBuffers = std::vector<DeviceBuffer>;

/// Calls change(values) for every buffer; once for those that share their memory, and they go on sharing it.
template <class Change>
void change_each(DeviceBuffers& buffers, Change change) {
  std::map<const double*, std::vector<std::size_t>> holders;
  for (std::size_t device = 0; device < buffers.size(); ++device) holders[buffers[device].data()].push_back(device);
  for (const auto& [data, devices] : holders) {
    DeviceBuffer changed = std::move(buffers[devices.front()]);
    for (const std::size_t device : devices) buffers[device] = DeviceBuffer();
    change(changed.edit());
    for (const std::size_t device : devices) buffers[device] = changed;
  }
}

/// Which devices make the same of the same: each is described by a key, numbers and the memory of buffers, that says all
/// that its result depends on. The memory must live as long as this.
class AlikeDevices {
 public:
  using Key = std::vector<std::int64_t>;

  /// Puts memory into a key.
  static std::int64_t memory(const DeviceBuffer& buffer) { return reinterpret_cast<std::intptr_t>(buffer.data()); }

  /// The first device that came with this key: this one, if it is new.
  std::size_t first_with(Key key, std::size_t device) { return first_.emplace(std::move(key), device).first->second; }

 private:
  std::map<Key, std::size_t> first_;
};

}  // namespace shardplan
