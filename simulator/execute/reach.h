#pragma once

#include <string>

#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "layouts/shape.h"

namespace shardplan {

/// Empty, or why devices cannot run this step: everything that a device holds after it must be in its own memory
/// before, or in that of its group along `step.axes`, and no summand may be lost or counted twice. Every step of a
/// RedistributionPlanner satisfies this. A step written out for a mesh of other sizes may not: an axis of 4 cannot be
/// exchanged for two of 2 if the one has become 2 and the two are 4.
///
/// "a device would hold what its group does not", "2 summands would become 3", ...
std::string check_reach(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape);

}  // namespace shardplan
