#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/shared_vector.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"
#include "operators/operator_type.h"

namespace shardplan {

/// How one operator is cut: axes for every factor of its rule. The layouts of operands and results follow.
///
/// MatMul (m k, k n -> m n) on dp=2, mp=4 with m over dp and k over mp: operands [{dp}, {mp}], [{mp}, {}], result
/// [{dp}, {}] unreduced={mp}.
struct Strategy {
  SharedVector<std::vector<AxisRef>> factors;  // by factor of the rule, major to minor
  /// Axes over which the operands of group `group` of `rule.linear` (or `rule.monotone` if `reduction` is not a sum)
  /// come as partial and the results stay so.
  SharedVector<AxisRef> partial;
  std::uint32_t group = 0;
  Reduction reduction = Reduction::kSum;

  bool operator==(const Strategy&) const = default;
};

/// True if both cut alike: a whole axis is the same as its pieces one after the other.
bool sharded_alike(const Strategy& a, const Strategy& b);

/// Canonical layouts of an operator's tensors under a strategy. A windowed dimension is cut as its output factor is.
TensorLayout operand_layout(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                            std::size_t operand);
TensorLayout result_layout(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                           std::size_t result);

/// Whether some factor is cut in pieces of unequal sizes (layouts/uneven.h).
bool is_uneven(const Operation& operation, const Strategy& strategy);

/// Nothing, or why a factor can only be cut in equal pieces: it is one of several that a dimension walks (its pieces would be
/// no intervals), or is read through a window (halos are exchanged between pieces of one size), or phases count its pieces.
std::string why_only_even(const Operation& operation, std::size_t factor);

/// The largest device's extent of every factor.
std::vector<std::int64_t> local_extents(const Operation& operation, const Strategy& strategy);
/// The boxes of the device at `point`: true intervals, of a shorter piece too.
std::vector<Box> boxes(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                       std::int64_t point);

/// True if a normalised factor is cut, so that the operator runs in phases.
bool runs_in_phases(const Operation& operation, const Strategy& strategy);
/// The phases of an operator that runs in them.
Phases phases_of(const Operation& operation, const Strategy& strategy);

/// Nothing, or why the strategy is not legal: pieces of a factor that would be empty, or unequal where they must be equal, an
/// axis used twice, a factor that must not be cut, a halo wider than the neighbour's shard, a dtype that cannot be partial.
std::string check_strategy(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh);

/// Bytes that a halo exchange brings to the busiest device for one windowed operand dimension, and how wide it is
/// there.
struct Halo {
  std::size_t operand = 0;
  std::size_t dimension = 0;
  std::vector<AxisRef> axes;  // that cut the output factor
  std::int64_t before = 0;    // the widest over all devices
  std::int64_t after = 0;
};
std::vector<Halo> halos(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh);

}  // namespace shardplan
