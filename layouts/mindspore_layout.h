#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

// MindSpore's two notations. Both number the devices row-major and know no names; on pcie=2, hccs=4:
//
//   strategy tuple    device_matrix   tensor_map    layout
//   (2, 4)            (2, 4)          (1, 0)        [{pcie}, {hccs}]
//   (4, 2)            (4, 2)          (1, 0)        [{pcie, hccs:(1)2}, {hccs:(2)2}]
//   (2, 1)            (2, 4)          (1, -1)       [{pcie}, {}]               the rest repeats, on the right
//   none              (2, 4)          (0, -1)       [{hccs}, {}]

/// The devices of a mesh in row-major order, read in mixed radix: for every factor the (parts of) axes that it is,
/// major to minor; the last entry is the rest, over which work is repeated. split_ranks(pcie=2 hccs=4, {4}) is {{pcie,
/// hccs:(1)2}, {hccs:(2)2}}. Nothing if a factor is below 1 or does not fit the axes: 3 of x=2, y=3.
std::optional<std::vector<std::vector<AxisRef>>> split_ranks(const DeviceMesh& mesh,
                                                             const std::vector<std::int64_t>& factors);

/// The layout of a tensor whose own cuts are the whole operator's: dimension i in tuple[i] pieces, repeated on the
/// right. For an operator with several operands split the ranks by *its* device matrix instead. Nothing as for
/// `split_ranks`.
std::optional<TensorLayout> layout_of_tuple(const std::vector<std::int64_t>& tuple, const DeviceMesh& mesh);
/// Nothing if no tuple says it: partial, parts of dimensions, another order of axes.
std::optional<std::vector<std::int64_t>> tuple_of_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                         const Shape& shape);

/// MindSpore's `Layout`. An entry of `tensor_map` lists positions in `device_matrix` counted from the right, major to
/// minor; empty is MindSpore's -1.
struct DeviceArrangement {
  std::vector<std::int64_t> device_matrix;
  std::vector<std::vector<std::int64_t>> tensor_map;

  bool operator==(const DeviceArrangement&) const = default;
};
/// "(8, 4), (1, -1)"; an entry of several positions is a tuple of its own.
std::string to_string(const DeviceArrangement& arrangement);

/// Throws InputError: sizes that do not multiply to the devices, positions out of range or used twice, a matrix that
/// the mesh's axes cannot be cut into.
TensorLayout layout_of_arrangement(const DeviceArrangement& arrangement, const DeviceMesh& mesh);
/// With the fewest entries of the device matrix that say it (MindSpore's "standard" form). Nothing if the layout is
/// partial or has parts of dimensions.
std::optional<DeviceArrangement> arrangement_of_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                       const Shape& shape);

}  // namespace shardplan
