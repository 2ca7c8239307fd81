#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/shared_vector.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"
#include "operators/operator_type.h"

namespace shardplan {

/// How one operator is sharded: axes for every factor of its rule. The layouts of operands and results follow.
///
/// MatMul (m k, k n -> m n) on dp=2, mp=4 with m over dp and k over mp: operands [{dp}, {mp}], [{mp}, {}], result
/// [{dp}, {}] unreduced={mp}.
struct Strategy {
  SharedVector<std::vector<AxisRef>> factors;  // by factor of the rule, major to minor
  /// Axes over which the operands of group `group` of `rule.linear` (or `rule.monotone` if `reduction` is not a sum)
  /// are partial and the results remain partial.
  SharedVector<AxisRef> partial;
  std::uint32_t group = 0;
  Reduction reduction = Reduction::kSum;

  bool operator==(const Strategy&) const = default;
};

/// True if both shard alike: a whole axis is the same as its pieces one after the other.
bool sharded_alike(const Strategy& a, const Strategy& b);

/// Canonical layouts of an operator's tensors under a strategy. A windowed dimension is sharded like its output
/// factor.
TensorLayout operand_layout(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                            std::size_t operand);
TensorLayout result_layout(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                           std::size_t result);

/// Whether some factor is sharded into unequal pieces (layouts/uneven.h).
bool is_uneven(const Operation& operation, const Strategy& strategy);

/// Nothing, or why a factor can only be sharded into equal pieces: it shares a dimension with other factors (its
/// pieces would not be intervals), is read through a window (halos are exchanged between pieces of one size), or its
/// pieces are counted by phases.
std::string why_only_even(const Operation& operation, std::size_t factor);

/// The extent of every factor on the device with the largest one.
std::vector<std::int64_t> local_extents(const Operation& operation, const Strategy& strategy);
/// The boxes of the device at `point`: true intervals, also of a shorter piece.
std::vector<Box> boxes(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                       std::int64_t point);

/// True if a normalised factor is sharded, so that the operator runs in phases.
bool runs_in_phases(const Operation& operation, const Strategy& strategy);
/// The phases of an operator that runs in them.
Phases phases_of(const Operation& operation, const Strategy& strategy);

/// Nothing, or why the strategy is not legal: pieces of a factor that would be empty, or unequal where they must be
/// equal, an axis used twice, a factor that must not be sharded, a halo wider than the neighbour's shard, a dtype
/// that cannot be partial.
std::string check_strategy(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh);

/// The halo of one windowed operand dimension: how many rows a device reads from its neighbours on either side.
struct Halo {
  std::size_t operand = 0;
  std::size_t dimension = 0;
  std::vector<AxisRef> axes;  // axes that shard the output factor
  std::int64_t before = 0;    // the widest over all devices
  std::int64_t after = 0;

  /// The most rows that one device receives. Of two pieces each has one neighbour.
  std::int64_t received() const { return num_pieces(axes) == 2 ? std::max(before, after) : before + after; }
};
std::vector<Halo> halos(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh);

}  // namespace shardplan
