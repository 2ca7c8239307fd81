#pragma once

#include <cstdint>
#include <vector>

#include "layouts/redistribution/redistribution.h"
#include "simulator/execute/device_buffer.h"

namespace shardplan {

/// Distributes a global tensor to the devices. If the layout is partial, the summands over its axes are unequal, of
/// both signs, and add up to the value (with the rounding of one sum); for max and min one device, a different one for
/// each element, holds the value, and the others hold something that does not win. Copies share their memory.
DeviceBuffers scatter(const std::vector<double>& global, const Shape& shape, const TensorLayout& layout,
                      const DeviceMesh& mesh, std::uint64_t seed = 0);

/// The inverse: the global tensor from the first copy of every shard, with summands reduced in the order of ranks.
std::vector<double> gather(const DeviceBuffers& buffers, const Shape& shape, const TensorLayout& layout,
                           const DeviceMesh& mesh);

/// The largest |held - expected| over all elements of all devices, including copies; partial shards are reduced over
/// their axes first.
double largest_error(const DeviceBuffers& buffers, const std::vector<double>& global, const Shape& shape,
                     const TensorLayout& layout, const DeviceMesh& mesh);

/// Runs one step: every device computes its new shard from its own memory and, in a collective, from the memories of
/// its group along `step.axes`, but no others. Summands are added in the order of ranks. Devices that compute the same
/// from the same buffers share the result.
DeviceBuffers apply(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                    const DeviceBuffers& buffers);
DeviceBuffers apply(const Redistribution& redistribution, const DeviceMesh& mesh, const Shape& shape,
                    DeviceBuffers buffers);

}  // namespace shardplan
