#pragma once

#include <span>

#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// Moves communication that no kernel of the step waits for (gathers of new weights) after communication that kernels
/// wait for, if that was ready when the former started to use the same links. `spans` are those of the order, by
/// position. The micro-batch loop is unchanged, buckets stay together, and what is moved keeps its order.
///
///     update a, gather a, gather b, reduce c, update c        while gather a runs, c is made:
///     update a, gather a, reduce c, gather b, update c
IssueOrder yielding(const InstructionTable& table, const IssueOrder& order,
                    std::span<const OverlappedTimeline::Span> spans);

}  // namespace shardplan
