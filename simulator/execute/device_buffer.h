#pragma once

#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "base/shared_value.h"

namespace shardplan {

/// One simulated device's shard of one tensor. Copies share their memory until one of them is written to, which then
/// gets its own memory: no device ever sees the writes of another. So 64 devices with one replicated weight take the
/// memory of one, and results that depend on shared buffers in the same way are computed only once.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::vector<double> values) : values_(std::move(values)) {}  // NOLINT: implicit on purpose
  DeviceBuffer(std::initializer_list<double> values) : values_(std::vector(values)) {}

  operator const std::vector<double>&() const { return *values_; }  // NOLINT: implicit on purpose
  std::size_t size() const { return values_->size(); }
  bool empty() const { return values_->empty(); }
  double operator[](std::size_t i) const { return (*values_)[i]; }
  double front() const { return values_->front(); }
  auto begin() const { return values_->begin(); }
  auto end() const { return values_->end(); }
  /// Equal for buffers that share their memory, as long as they exist.
  const double* data() const { return values_->data(); }

  /// For writing. The reference is valid until the buffer is copied.
  std::vector<double>& edit() { return values_.edit(); }

  bool operator==(const DeviceBuffer&) const = default;

 private:
  SharedValue<std::vector<double>> values_;
};

/// The shards of one tensor on all simulated devices: by point of the mesh, each row-major. Numbers are float64
/// whatever the dtype; for a float32 run the executor rounds them. Buffers with shorter shards of an uneven dimension
/// (layouts/uneven.h) end in NaN padding, which every step writes again.
using DeviceBuffers = std::vector<DeviceBuffer>;

/// Calls change(values) once for all buffers that share one memory; they continue to share it.
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

/// Finds devices that compute the same result. A device's key, of numbers and memories of buffers, contains all that
/// its result depends on. The memories must outlive this object.
class AlikeDevices {
 public:
  using Key = std::vector<std::int64_t>;

  /// Encodes a buffer's memory for a key.
  static std::int64_t memory(const DeviceBuffer& buffer) { return reinterpret_cast<std::intptr_t>(buffer.data()); }

  /// The first device with this key: `device` itself if the key is new.
  std::size_t first_with(Key key, std::size_t device) { return first_.emplace(std::move(key), device).first->second; }

 private:
  std::map<Key, std::size_t> first_;
};

}  // namespace shardplan
