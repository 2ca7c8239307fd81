#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The axes of a mesh, each split where some layouts split it: whole axes of a finer mesh, in which sub-axes are lists
/// of axes. On pcie=2, hccs=4 the layouts [{hccs}] and [{hccs:(2)2}] give pcie=2, hccs_0=2, hccs_1=2, in which they are
/// hccs_0, hccs_1 and hccs_1. Notations without sub-axes (MindSpore, JAX, DTensor) need this.
class RefinedAxes {
 public:
  /// Splits at the boundaries of all `refs`. If boundaries of one axis do not divide each other, the later ones are
  /// ignored.
  RefinedAxes(const DeviceMesh& mesh, const std::vector<AxisRef>& refs);

  struct Axis {
    std::string name;  // "hccs"; "hccs_0", "hccs_1", ... if split
    std::int64_t size = 1;
  };
  const std::vector<Axis>& axes() const { return axes_; }
  /// The positions in `axes()` that form `ref`, major to minor; nothing if it cannot be formed.
  std::optional<std::vector<std::size_t>> find(const AxisRef& ref) const;

 private:
  std::vector<Axis> axes_;
  std::vector<AxisRef> parts_;  // the mesh axes' parts, by position in `axes_`
};

}  // namespace shardplan
