#pragma once

#include <string>

#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "layouts/shape.h"

namespace shardplan {

/// Nothing, or why devices cannot run this step: everything that one is to hold after it must stand in its own memory
/// before, or in that of its group along `step.axes`, and no summand may be lost or counted twice. Holds of every step
/// that a RedistributionPlanner makes. A step that is written out for a mesh of other sizes may break it: exchanging an
/// axis of 4 for two of 2 means nothing where the one has become 2 and the two are 4.
///
/// "a device would hold what its group does not", "2 summands would become 3", ...
std::string check_reach(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape);

}  // namespace shardplan
