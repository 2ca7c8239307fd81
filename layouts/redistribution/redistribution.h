#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

enum class CollectiveKind {
  kSlice,  // keep one's own piece; free
  kAllGather,
  kAllToAll,
  kReduceScatter,
  kAllReduce,
  kCollectivePermute,
  kToPartial,  // local step into a partial layout (zeros or padding); free
};
/// "slice", "all_gather", ...
std::string_view to_string(CollectiveKind kind);

/// Seconds of one collective over groups along `axes`. `group_bytes` is the whole tensor of one group: what all_gather
/// ends with, what reduce_scatter and all_reduce begin with on each device, and all members' pieces together of an
/// all_to_all or permute. Implemented by the cost model; `layouts/` lies above it.
class CollectiveCosts {
 public:
  virtual ~CollectiveCosts() = default;
  virtual Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const = 0;
};

/// One step of a redistribution.
struct CollectiveStep {
  CollectiveKind kind = CollectiveKind::kSlice;
  std::vector<AxisRef> axes;              // of the groups, major to minor as the pieces are ordered
  std::optional<std::size_t> from_dim;    // all_gather, all_to_all: the dimension put together
  std::optional<std::size_t> to_dim;      // slice, all_to_all, reduce_scatter: the dimension cut
  Reduction reduction = Reduction::kSum;  // reduce_scatter, all_reduce, to_partial
  TensorLayout before;
  TensorLayout after;
  Shape local_shape;  // after the step
  Bytes sent = 0;     // by the busiest device
  Picoseconds time = 0;
};

/// The steps from one layout to another; none if they place alike.
struct Redistribution {
  TensorLayout from;
  TensorLayout to;
  std::vector<CollectiveStep> steps;
  Picoseconds time = 0;
  Bytes sent = 0;
  Bytes peak = 0;  // input plus output of the worst step, of one device
};

struct RedistributionOptions {
  bool bounded_memory = true;  // no intermediate shard above the larger end, wherever such a sequence exists
  /// The pieces in which the asker cuts the mesh, in mesh order. Between layouts that place whole pieces the steps are
  /// looked for among such layouts only, in the parts that the two ends have: all pairs of a tensor share a few small
  /// graphs; detours through other parts are not seen. Other pairs, and all if this is empty, are refined as needed.
  std::vector<AxisRef> pieces = {};
};

/// In how many pieces a layout cuts a tensor: a shard is the tensor divided by this.
std::int64_t num_shards(const TensorLayout& layout);
/// What the busiest device sends in one collective over `group_size` devices; `group_bytes` as for CollectiveCosts.
Bytes sent_bytes(CollectiveKind kind, std::int64_t group_size, Bytes group_bytes);
/// Fills `sent` and `time` of a step of which all else is known.
void set_price(CollectiveStep& step, Bytes tensor_bytes, const CollectiveCosts& costs);
/// Fills `time`, `sent` and `peak` of the whole.
void add_up(Redistribution& redistribution, Bytes tensor_bytes);

/// Plans redistributions on one mesh and remembers them: the cheapest sequence of collectives under `costs` by shortest
/// path (redistribution.cc: over what states; why more than one permute can be best). Equal costs are resolved by a
/// fixed order, so results never depend on what was asked before.
class RedistributionPlanner {
 public:
  RedistributionPlanner(DeviceMesh mesh, std::shared_ptr<const CollectiveCosts> costs,
                        RedistributionOptions options = {});
  ~RedistributionPlanner();

  /// `element_bytes` is the dtype's size. Layouts need not be canonical but must pass `check_layout`. The reference
  /// stays valid as long as the planner. Not for use from several threads at once.
  const Redistribution& plan(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes);

  /// `plan(...).time`, on small graphs without the steps and without remembering them: many targets of one source in a
  /// row cost one search.
  Picoseconds time(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes);

  /// `time` of every pair, row by row. What a matrix of a problem asks for: a few hundred thousand times a second.
  std::vector<Picoseconds> times(std::span<const TensorLayout* const> from, std::span<const TensorLayout* const> to,
                                 const Shape& shape, Bytes element_bytes);

  const DeviceMesh& mesh() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
