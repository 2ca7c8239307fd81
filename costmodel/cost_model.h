#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/fusion.h"
#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "operators/operation.h"

namespace shardplan {

/// The times that the devices of one mesh take: the interface between plans and machines. Problems
/// (planner/problem/model_problem.h), operators (costmodel/operator_steps.h) and programs (program/lower.h) use it
/// and know no cluster. `RooflineCosts` implements it from a cluster's constants; a table of measurements could do so
/// as well.
///
/// Units:     picoseconds of one device, exact integers; equal questions get equal answers.
/// Requires:  axes are axes of `mesh()`. May be asked from several threads at once.
class CostModel {
 public:
  virtual ~CostModel() = default;

  virtual const DeviceMesh& mesh() const = 0;

  /// Which operators run as one kernel (costmodel/kernel_fusion.h).
  virtual Fusion fusion() const = 0;

  /// The time of one run of an operator's kernel. `factor_extents` are the local extents of its factors
  /// (`local_extents`), `local_bytes` what the kernel reads and writes on one device; `is_started` is false for a
  /// part of a fused kernel that was already started. Throws InputError (without a place) for a dtype that the device
  /// does not compute.
  virtual Picoseconds computation(const Operation& operation, std::span<const std::int64_t> factor_extents,
                                  Bytes local_bytes, bool is_started) const = 0;

  /// The time in which a kernel that is already started reads that many bytes of its device's memory.
  virtual Picoseconds reading(Bytes bytes) const = 0;

  /// Collectives over groups of devices; for redistributions.
  virtual std::shared_ptr<const CollectiveCosts> collectives() const = 0;

  /// The levels of links that a collective over `axes` uses: bit l for the cluster's level l, outermost first.
  virtual std::uint32_t links(const std::vector<AxisRef>& axes) const = 0;

  /// By level of the cluster: the speeds of kernels and of collectives on its links while both run.
  virtual std::vector<SpeedsTogether> speeds_together() const = 0;

  /// Whether collectives run piece by piece beside their products (program/collective_matmul.h).
  virtual bool has_collective_matmul() const { return false; }

  /// The time of a halo exchange: every device sends `sent` bytes to a neighbour along `axes`.
  virtual Picoseconds neighbour_exchange(const std::vector<AxisRef>& axes, Bytes sent) const = 0;
};

}  // namespace shardplan
