#pragma once

#include <memory>

#include "costmodel/cluster/cluster.h"
#include "costmodel/cost_model.h"
#include "costmodel/hierarchical_costs.h"

namespace shardplan {

/// The times of a cluster: a roofline for kernels, its hierarchy of links for collectives. Times and bytes are integers
/// (128-bit products, rounded up); flops and shares are doubles, combined by + - * / only. So costs are the same on
/// every machine.
class RooflineCosts final : public CostModel {
 public:
  /// Requires that every device of `mesh` is one of the cluster's.
  RooflineCosts(Cluster cluster, DeviceMesh mesh);

  const DeviceMesh& mesh() const override { return mesh_; }

  /// The maximum of the operations at the device's rate and the bytes at memory speed, plus the kernel start if a
  /// kernel is started; views cost nothing. A contraction runs at the rate of its first operand's dtype times
  /// `efficiency.matmul` (fused attention: `efficiency.attention`, if given), everything else at the plain f32 rate
  /// (f64 at its own; without floating-point numbers by bytes only). A dtype that the device does not support is
  /// never silently replaced.
  /// Source: Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
  Picoseconds computation(const Operation& operation, std::span<const std::int64_t> factor_extents, Bytes local_bytes,
                          bool is_started = true) const override;
  Picoseconds reading(Bytes bytes) const override;
  Fusion fusion() const override { return cluster_.fusion; }
  std::shared_ptr<const CollectiveCosts> collectives() const override { return collectives_; }
  std::uint32_t links(const std::vector<AxisRef>& axes) const override { return collectives_->links(axes); }
  std::vector<SpeedsTogether> speeds_together() const override;
  bool has_collective_matmul() const override { return cluster_.collectives.collective_matmul; }
  /// The latency of the outermost level crossed plus the bytes over its bandwidth.
  Picoseconds neighbour_exchange(const std::vector<AxisRef>& axes, Bytes sent) const override;

 private:
  Cluster cluster_;
  DeviceMesh mesh_;
  std::shared_ptr<const HierarchicalCosts> collectives_;
};

}  // namespace shardplan
