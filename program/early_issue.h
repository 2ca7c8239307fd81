#pragma once

#include "program/buckets.h"
#include "program/instruction_table.h"

namespace shardplan {

/// A collective whose result is not larger than its operand (reduce_scatter, all_reduce, all_to_all, permute) is issued right
/// behind what makes its operand, and so is what goes on with it up to that size: gradients are reduced beside the rest of
/// the backward pass. What the loop of micro-batches makes is reduced in the loop's last run.
IssueOrder issued_early(const InstructionTable& table, IssueOrder order);

/// A cheap kernel that reads nothing but what such collectives leave (the cast of a reduced gradient, its share of a norm) is
/// issued right before the first that needs it. Kernels run in order: behind its reduction it would keep the rest of the
/// backward pass waiting for the links.
IssueOrder delayed(const InstructionTable& table, IssueOrder order);

}  // namespace shardplan
