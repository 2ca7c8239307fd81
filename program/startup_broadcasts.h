#pragma once

#include <vector>

#include "graph/operator_graph.h"
#include "layouts/collective.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The axes of the mesh over which a layout replicates a tensor, in the order of the mesh; sub-axes if an axis is
/// used in part: on x=8, for [{x:(2)2}] they are {x:(1)2, x:(4)2}.
std::vector<AxisRef> repeated_axes(const TensorLayout& layout, const DeviceMesh& mesh);

/// The time to broadcast `bytes` bytes from one device of a group along `axes` to the others, or to reduce them to
/// it. Requires more than one member.
Picoseconds broadcast_time(const std::vector<AxisRef>& axes, Bytes bytes, const CollectiveCosts& costs);

/// MindSpore's parameter_broadcast: for every parameter and state that several devices store alike, one broadcast
/// from the first of them, in the order of `program.given`. Parameters that are separate on each device have none.
std::vector<StartupBroadcast> startup_broadcasts(const ParallelProgram& program, const OperatorGraph& graph,
                                                 const CollectiveCosts& costs);

/// The bytes sent to one device in all broadcasts, and the time of all, one after the other.
Bytes startup_bytes(const ParallelProgram& program);
Picoseconds startup_time(const ParallelProgram& program);

}  // namespace shardplan
