#pragma once

#include "program/buckets.h"
#include "program/instruction_table.h"

namespace shardplan {

/// Issues a collective whose result is not larger than its operand (reduce_scatter, all_reduce, all_to_all, permute)
/// right after the producer of its operand, together with the collectives that continue from it up to that size:
/// gradients are reduced during the rest of the backward pass. What the micro-batch loop produces is reduced during
/// its last iteration.
IssueOrder issued_early(const InstructionTable& table, IssueOrder order);

/// Moves a cheap kernel that reads only results of such collectives (the cast of a reduced gradient, its contribution
/// to a norm) right before its first reader. Kernels run in order: right after its reduction it would make the rest
/// of the backward pass wait for the links.
IssueOrder delayed(const InstructionTable& table, IssueOrder order);

}  // namespace shardplan
