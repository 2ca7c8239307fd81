#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "costmodel/cluster.h"
#include "costmodel/hierarchical_costs.h"
#include "layouts/device_mesh.h"
#include "layouts/redistribution/redistribution.h"
#include "operators/operator_type.h"

namespace shardplan {

/// The mesh of a cluster: its levels with a count above 1, outermost first; or the user's axes, whose sizes must
/// multiply to the devices (InputError otherwise).
DeviceMesh make_mesh(const Cluster& cluster);
DeviceMesh make_mesh(const Cluster& cluster, const std::vector<MeshAxis>& axes);

/// What each (part of an) axis spans of the cluster's levels: "pcie", "node x nvlink", ... for printing.
std::vector<std::string> spanned_levels(const Cluster& cluster, const DeviceMesh& mesh, const AxisRef& axis);

/// The mesh's axes cut into the pieces that a search may use: whole axes, or sub-axes as DESIGN.md says (at most `most`
/// pieces in all, the inner levels first); major to minor.
std::vector<AxisRef> search_pieces(const DeviceMesh& mesh, std::size_t most = 3);

/// Seconds of computation and communication on one cluster. Everything is exact integer arithmetic (128-bit products,
/// rounded up), so that costs are the same on every machine.
class CostModel {
 public:
  CostModel(Cluster cluster, DeviceMesh mesh);

  const Cluster& cluster() const { return cluster_; }
  const DeviceMesh& mesh() const { return mesh_; }

  /// Roofline of one local operator: the larger of its operations at the device's rate and its bytes (operands and
  /// results, local) at memory speed, plus the fixed start; views cost nothing. A contraction computes at the rate of
  /// its first operand's dtype times `efficiency.matmul`, everything else at the plain f32 rate (f64 at its own; no
  /// floating-point number: by bytes alone). Throws InputError (no place) for a dtype that the device does not have;
  /// none is silently replaced.
  Picoseconds computation(const Operation& operation, std::span<const std::int64_t> factor_extents,
                          Bytes local_bytes) const;
  /// For redistributions.
  std::shared_ptr<const CollectiveCosts> collectives() const { return collectives_; }
  Picoseconds collective(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const {
    return collectives_->time(kind, axes, group_bytes);
  }
  /// A point-to-point exchange with neighbours along an axis (halo): latency of the outermost level crossed plus bytes
  /// over its bandwidth.
  Picoseconds neighbour_exchange(const std::vector<AxisRef>& axes, Bytes sent) const;

 private:
  Cluster cluster_;
  DeviceMesh mesh_;
  std::shared_ptr<const HierarchicalCosts> collectives_;
};

}  // namespace shardplan
