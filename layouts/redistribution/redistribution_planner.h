#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "layouts/redistribution/redistribution.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

struct RedistributionOptions {
  bool bounded_memory = true;  // no intermediate shard above the larger end, wherever such a sequence exists
  /// The pieces in which the caller cuts the mesh, in mesh order. Between layouts that place whole pieces the steps are
  /// searched among such layouts only, in the parts that the two ends have: all pairs of a tensor share a few small
  /// graphs; detours through other parts are not seen. Other pairs, and all if this is empty, are refined as needed.
  std::vector<AxisRef> pieces = {};
};

/// Plans redistributions on one mesh and remembers them: the cheapest sequence of collectives under `costs` by shortest
/// path (redistribution_planner.cc: over what states; why more than one permute can be best). Equal costs are resolved
/// by a fixed order, so an answer never depends on the questions before it.
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

  /// `time` of every pair, row by row: what the cost matrix of an edge needs, a few hundred thousand times a second.
  std::vector<Picoseconds> times(std::span<const TensorLayout* const> from, std::span<const TensorLayout* const> to,
                                 const Shape& shape, Bytes element_bytes);
  /// Lets go of what `times` keeps to answer faster, which for hundreds of tensors are some hundred MiB.
  void forget_times();

  const DeviceMesh& mesh() const;
  /// One that gives the same answers and has been asked nothing yet, for another thread.
  std::unique_ptr<RedistributionPlanner> another() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
