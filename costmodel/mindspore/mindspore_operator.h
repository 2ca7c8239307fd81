#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "costmodel/mindspore/mindspore_costs.h"
#include "strategies/strategy.h"

namespace shardplan {

// Our operators and strategies as MindSpore's cost model sees them.

/// The device matrix of an operator whose factors are sharded over these axes: the ranks in mixed radix, major to
/// minor, one digit per group of mesh pieces that belong together. On pcie=2, hccs=4 with m over {pcie, hccs:(1)2}
/// the matrix is (4, 2): m, then the digit of repeated work.
struct DeviceDigits {
  std::vector<std::int64_t> sizes;                  // the device matrix
  std::vector<std::vector<std::size_t>> of_factor;  // by factor: its digits, major to minor
};
DeviceDigits device_digits(const std::vector<std::vector<AxisRef>>& factors, const DeviceMesh& mesh);

/// A tensor's layout over such a matrix. A dimension sharded by several digits becomes as many dimensions, as in
/// MindSpore. Partial tensors count as summed: MindSpore completes every sum within its operator.
MindSporeTensorLayout mindspore_layout(const TensorWalk& walk, const Shape& shape, const std::vector<Factor>& factors,
                                       const DeviceDigits& digits);
/// The layout of a tensor that belongs to no operator: an input of the model.
MindSporeTensorLayout mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

/// MindSpore's formula for an operator; kBatchParallel if it has none.
MindSporeFamily mindspore_family(const Operation& operation);

/// An operator under a strategy, for `mindspore_operator_cost`. `is_parameter` says of each operand whether it is a
/// parameter of the model.
MindSporeOperator mindspore_operator(const Operation& operation, const Strategy& strategy,
                                     std::span<const char> is_parameter);

/// Nothing, or why MindSpore has no such strategy: a partial sum passes through, or a factor is sharded that
/// MindSpore replicates (the one that a norm or a softmax runs over).
std::string check_mindspore_strategy(const Operation& operation, const Strategy& strategy);

/// MindSpore's candidates (`fully_use_devices`): all ways to split the factors that it may split by powers of two (by
/// divisors, if the number of devices is no power of two) that use all devices or one; consecutive ranks in the order
/// of the factors, repeated work last. The largest splits of the first factors come first.
std::vector<Strategy> mindspore_candidates(const Operation& operation, const DeviceMesh& mesh);

}  // namespace shardplan
