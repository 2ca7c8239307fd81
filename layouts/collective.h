#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "layouts/axis_ref.h"
#include "layouts/shape.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// What a device group can do to a tensor in one step. On x=4, each on a tensor of n bytes:
///
///                       before                after                 one device holds   sends
///   slice               [{}]                  [{x}]                 n -> n/4           nothing
///   all_gather          [{x}]                 [{}]                  n/4 -> n           3/4 n
///   all_to_all          [{x}, {}]             [{}, {x}]             n/4 -> n/4         3/16 n
///   reduce_scatter      [{}] unreduced={x}    [{x}]                 n -> n/4           3/4 n
///   all_reduce          [{}] unreduced={x}    [{}]                  n -> n             6/4 n
///   collective_permute  [{x:(1)2, x:(2)2}]    [{x:(2)2, x:(1)2}]    n/4 -> n/4         1/4 n
///   to_partial          [{}]                  [{}] unreduced={x}    n -> n             nothing
enum class CollectiveKind {
  kSlice,  // each device keeps its own shard
  kAllGather,
  kAllToAll,
  kReduceScatter,
  kAllReduce,
  kCollectivePermute,
  kToPartial,  // to a partial layout: one device keeps the value, the others hold zeros; or padding
};
/// "slice", "all_gather", ...
std::string_view to_string(CollectiveKind kind);

/// Whether the step needs no communication: slice and to_partial cost nothing.
bool is_local(CollectiveKind kind);

/// Time of one collective over groups along `axes`. `group_bytes` is the complete tensor of one group: the result of
/// an all_gather, each device's operand of a reduce_scatter or all_reduce, and all members' shards together for an
/// all_to_all or permute. Implemented by the cost model, which depends on this folder.
class CollectiveCosts {
 public:
  virtual ~CollectiveCosts() = default;
  virtual Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const = 0;
};

/// The cost of one step: its time, and the bytes that the busiest device sends.
struct StepCost {
  Picoseconds time = 0;
  Bytes sent = 0;

  bool operator==(const StepCost&) const = default;
};
/// `axes` span the group, in mesh order and joined. `shard_bytes` is one device's share of the tensor before the step
/// (for an all_gather after it). Time and bytes are capped at 2^55 (10 hours, 32 PiB), so that sums cannot overflow.
StepCost step_cost(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes shard_bytes,
                   const CollectiveCosts& costs);

/// What the busiest device sends in one collective over `group_size` devices; `group_bytes` as for CollectiveCosts.
Bytes sent_bytes(CollectiveKind kind, std::int64_t group_size, Bytes group_bytes);

/// One step from one layout to another.
struct CollectiveStep {
  CollectiveKind kind = CollectiveKind::kSlice;
  std::vector<AxisRef> axes;              // the axes that form the groups, major to minor as the shards are ordered
  std::optional<std::size_t> from_dim;    // all_gather, all_to_all: the dimension that is gathered
  std::optional<std::size_t> to_dim;      // slice, all_to_all, reduce_scatter: the dimension sharded
  Reduction reduction = Reduction::kSum;  // reduce_scatter, all_reduce, to_partial
  TensorLayout before;
  TensorLayout after;
  Shape local_shape;  // after the step
  Bytes sent = 0;     // by the busiest device
  Picoseconds time = 0;
};

/// Fills in `sent` and `time` of a step.
void set_cost(CollectiveStep& step, Bytes tensor_bytes, const CollectiveCosts& costs);

}  // namespace shardplan
