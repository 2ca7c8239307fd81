#pragma once

#include <span>
#include <vector>

#include "simulator/execute/collectives.h"

namespace shardplan {

/// One member of a bucket: a step and the tensor it applies to.
struct JoinedCollective {
  const CollectiveStep* step = nullptr;
  Shape shape;  // global
  const DeviceBuffers* input = nullptr;
};

/// Runs a bucket (`Bucket`, program/parallel_program.h) like devices: each packs the elements of all members into one
/// flat buffer, piece by receiver; the devices of a group exchange or reduce these buffers without knowledge of
/// tensors; each unpacks what it receives. The result equals that of `apply` on every member, bit for bit.
///
/// Requires:  members of one kind (all_reduce, reduce_scatter, all_gather), over the same axes, with one reduction.
std::vector<DeviceBuffers> apply_joined(std::span<const JoinedCollective> members, const DeviceMesh& mesh);

}  // namespace shardplan
