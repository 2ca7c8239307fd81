#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

// MindSpore's two notations. Both number the devices row-major and have no axis names. On pcie=2, hccs=4:
//
//   strategy tuple    device_matrix   tensor_map    layout
//   (2, 4)            (2, 4)          (1, 0)        [{pcie}, {hccs}]
//   (4, 2)            (4, 2)          (1, 0)        [{pcie, hccs:(1)2}, {hccs:(2)2}]
//   (2, 1)            (2, 4)          (1, -1)       [{pcie}, {}]               replicated over the rest, on the right
//   none              (2, 4)          (0, -1)       [{hccs}, {}]

/// Reads the row-major order of devices in mixed radix: for every factor the (sub-)axes that form it, major to minor;
/// the last entry holds the remaining axes, over which work is repeated. split_ranks(pcie=2 hccs=4, {4}) is {{pcie,
/// hccs:(1)2}, {hccs:(2)2}}. Nothing if a factor is below 1 or cannot be formed from the axes: 3 of x=2, y=3.
std::optional<std::vector<std::vector<AxisRef>>> split_ranks(const DeviceMesh& mesh,
                                                             const std::vector<std::int64_t>& factors);

/// The layout of a tensor whose tuple is that of the whole operator: dimension i is split into tuple[i] pieces and
/// replicated over the remaining axes on the right. For an operator with several operands, split the ranks by the
/// operator's device matrix instead. Nothing as for `split_ranks`.
std::optional<TensorLayout> layout_of_tuple(const std::vector<std::int64_t>& tuple, const DeviceMesh& mesh);
/// Nothing if no tuple expresses the layout: it is partial, has parts of dimensions or another order of axes.
std::optional<std::vector<std::int64_t>> tuple_of_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                         const Shape& shape);
/// "(2, 1)", "(8)", "()": without Python's trailing comma for a single value, as in MindSpore's graph dumps.
std::string tuple_text(const std::vector<std::int64_t>& values);

/// MindSpore's `Layout`. An entry of `tensor_map` lists positions in `device_matrix` counted from the right, major to
/// minor; empty is MindSpore's -1.
struct MindSporeLayout {
  std::vector<std::int64_t> device_matrix;
  std::vector<std::vector<std::int64_t>> tensor_map;

  bool operator==(const MindSporeLayout&) const = default;
};
/// From a map with one position per dimension, -1 if the dimension is not sharded: (8, 4) and (1, -1).
MindSporeLayout mindspore_layout(std::vector<std::int64_t> device_matrix, const std::vector<std::int64_t>& tensor_map);
/// "(8, 4), (1, -1)"; an entry of several positions is a tuple of its own: "(2, 4), ((0, 1), -1)".
std::string to_string(const MindSporeLayout& layout);
/// The tensor map alone: the second half of `to_string`.
std::string tensor_map_text(const MindSporeLayout& layout);

/// Throws InputError if the product of the sizes is not the number of devices, a position is out of range or used
/// twice, or the matrix cannot be formed from the mesh's axes.
TensorLayout layout_of(const MindSporeLayout& layout, const DeviceMesh& mesh);

// Many device matrices express a layout; two of them are used. On x=2, y=4:
//
//   layout                merged               per axis
//   [{x, y}, {}]          (8), (0, -1)         (2, 4), ((1, 0), -1)
//   [{y}, {x}]            (2, 4), (0, 1)       (2, 4), (0, 1)
//   [{y:(2)2}, {}]        (4, 2), (0, -1)      (2, 2, 2), (0, -1)
//   [{}, {}]              (8), (-1, -1)        (2, 4), (-1, -1)

/// The layout with the fewest entries in the device matrix, MindSpore's "standard" form: consecutive axes that are used
/// together, or that are all unused, form one entry. `shardplan layout` prints it. Nothing if the layout is partial or
/// has parts of dimensions.
std::optional<MindSporeLayout> merged_mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh,
                                                       const Shape& shape);

/// The layout with one entry per axis of the mesh (per sub-axis if the layout uses sub-axes), so that all tensors of a
/// plan that use whole axes have the same device matrix. Plan files and the IR use it. Partial axes are not expressed,
/// only the shards. Nothing if a sharded dimension has several parts.
std::optional<MindSporeLayout> per_axis_mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh);

}  // namespace shardplan
