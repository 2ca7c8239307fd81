#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "costmodel/mindspore/mindspore_costs.h"
#include "strategies/strategy.h"

namespace shardplan {

// Our operators and strategies as MindSpore's cost model sees them.

/// The device matrix of an operator that cuts its factors over these axes: the ranks read in mixed radix, major to
/// minor, each digit the pieces of the mesh that belong together. On pcie=2, hccs=4 with m over {pcie, hccs:(1)2} the
/// matrix is (4, 2): m, then what repeats.
struct DeviceDigits {
  std::vector<std::int64_t> sizes;                  // the device matrix
  std::vector<std::vector<std::size_t>> of_factor;  // by factor: its digits, major to minor
};
DeviceDigits device_digits(const std::vector<std::vector<AxisRef>>& factors, const DeviceMesh& mesh);

/// A tensor's layout over such a matrix. A dimension that several digits cut becomes as many dimensions, as in
/// MindSpore. What is partial is taken as summed up: MindSpore completes every sum within its operator.
MindSporeTensorLayout mindspore_layout(const TensorWalk& walk, const Shape& shape, const std::vector<Factor>& factors,
                                       const DeviceDigits& digits);
/// The layout of a tensor that belongs to no operator: an input of the model.
MindSporeTensorLayout mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

/// Which formula MindSpore has for an operator; kBatchParallel where it has none.
MindSporeFamily mindspore_family(const Operation& operation);

/// An operator under a strategy, for `mindspore_operator_cost`. `is_parameter` says of each operand whether it is a
/// parameter of the model.
MindSporeOperator mindspore_operator(const Operation& operation, const Strategy& strategy,
                                     std::span<const char> is_parameter);

/// Nothing, or why MindSpore has no such strategy: a partial sum goes through, or a factor is cut that it keeps whole
/// (what a norm or a softmax runs over).
std::string check_mindspore_strategy(const Operation& operation, const Strategy& strategy);

/// MindSpore's candidates (`fully_use_devices`): all cuts of the factors that it may cut by powers of two (by divisors,
/// if the number of devices is no power of two) that use all devices or one; consecutive ranks in the order of the
/// factors, repeats last. The first factors' largest cuts come first.
std::vector<Strategy> mindspore_candidates(const Operation& operation, const DeviceMesh& mesh);

}  // namespace shardplan
