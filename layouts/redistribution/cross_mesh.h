#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The device at a point of the mesh.
std::int64_t device_at(const DeviceMesh& mesh, std::int64_t point);

/// The same placement in the axes of another mesh over the same devices in the same order: [{a}] of a=4, b=2 is
/// [{x, y:(1)2}] on x=2, y=4. Nothing if the axes have no common refinement (a=2, b=3 and x=3, y=2) or the devices
/// differ.
std::optional<TensorLayout> on_mesh(const TensorLayout& layout, const DeviceMesh& mesh, const DeviceMesh& other);

/// A tensor in cells, the largest blocks that two layouts never split in any dimension: for [1024, 8] between [{x}, {}]
/// and [{y}, {}] with x=4, y=8 the cells are [8, 1], of 1024 elements each. The sends depend on the cells only, so
/// large tensors are planned with few positions.
struct TensorCells {
  Shape shape;  // in cells
  std::int64_t elements = 1;
  TensorLayout from;  // the two layouts, of the cells
  TensorLayout to;
};
TensorCells cells_of(const TensorLayout& from, const TensorLayout& to, const Shape& shape);

/// What one device sends to another: the elements at all combinations of these positions, one ascending list per
/// dimension.
struct BoxSend {
  std::int64_t from_device = 0;
  std::int64_t to_device = 0;
  std::vector<std::vector<std::int64_t>> positions;

  std::int64_t num_elements() const;
};

/// The sends that bring a tensor from one mesh to another with different, equal or partly the same devices: for each
/// receiver the intersections of its shard with the senders' shards. What a device already holds it sends to itself.
/// Copies share the sending evenly. Requires that `from` is not partial (reduce first); if the target is a partial sum,
/// only the members at coordinate 0 receive, and the others hold zeros. Ordered by receiver, then sender.
std::vector<BoxSend> plan_sends(const TensorLayout& from, const DeviceMesh& from_mesh, const TensorLayout& to,
                                const DeviceMesh& to_mesh, const Shape& shape);

}  // namespace shardplan
