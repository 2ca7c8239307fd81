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
  /// The pieces into which the caller splits the mesh, in mesh order. Between layouts of whole pieces, steps are
  /// searched among such layouts only, in the parts that the two ends have: then all pairs of a tensor share a few
  /// small graphs, and detours through other parts are not considered. Other pairs, and all if this is empty, are
  /// refined as needed.
  std::vector<AxisRef> pieces = {};
};

/// Plans redistributions on one mesh and caches them: the cheapest sequence of collectives under `costs`, by shortest
/// paths (redistribution_planner.cc: over which states, and why more than one permute can be best). Ties are broken by
/// a fixed order, so an answer never depends on earlier questions.
class RedistributionPlanner {
 public:
  RedistributionPlanner(DeviceMesh mesh, std::shared_ptr<const CollectiveCosts> costs,
                        RedistributionOptions options = {});
  ~RedistributionPlanner();

  /// `element_bytes` is the dtype's size. Layouts need not be canonical but must pass `check_layout`. The reference
  /// stays valid as long as the planner. Not for use from several threads at once.
  const Redistribution& plan(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes);

  /// `plan(...).time`; on small graphs without the steps and without caching: consecutive queries for many targets of
  /// one source take one search.
  Picoseconds time(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes);

  /// `time` of every pair, row by row, for the cost matrix of an edge: a few hundred thousand per second.
  std::vector<Picoseconds> times(std::span<const TensorLayout* const> from, std::span<const TensorLayout* const> to,
                                 const Shape& shape, Bytes element_bytes);
  /// Frees what `times` keeps to answer faster, which for hundreds of tensors is some hundred MiB.
  void forget_times();

  const DeviceMesh& mesh() const;
  /// A planner that gives the same answers and has an empty cache, for another thread.
  std::unique_ptr<RedistributionPlanner> another() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
