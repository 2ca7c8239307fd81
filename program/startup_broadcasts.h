#pragma once

#include <vector>

#include "graph/operator_graph.h"
#include "layouts/collective.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The axes of the mesh that no dimension of a layout is cut by: over them every device holds the same. In the order of
/// the mesh, sub-axes where an axis is used in part: on x=8 that of [{x:(2)2}] is {x:(1)2, x:(4)2}.
std::vector<AxisRef> repeated_axes(const TensorLayout& layout, const DeviceMesh& mesh);

/// Time to broadcast `bytes` bytes from one device of a group along `axes` to the others, or to reduce them to that
/// one. Requires more than one member.
Picoseconds broadcast_time(const std::vector<AxisRef>& axes, Bytes bytes, const CollectiveCosts& costs);

/// MindSpore's parameter_broadcast: one broadcast of every parameter and state that several devices store alike, from
/// the first of them, in the order of `program.given`. What every device has its own of has none.
std::vector<StartupBroadcast> startup_broadcasts(const ParallelProgram& program, const OperatorGraph& graph,
                                                 const CollectiveCosts& costs);

/// What is sent to one device in each, and the time of all, one after the other.
Bytes startup_bytes(const ParallelProgram& program);
Picoseconds startup_time(const ParallelProgram& program);

}  // namespace shardplan
