#pragma once

#include <span>

#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// Puts communication that no kernel of the step waits for (gathers of new weights) behind what kernels wait for, where that
/// was ready when it began to use the same links. `spans` are those of the order, by place. The loop of micro-batches
/// stays as it is; buckets stay in one piece; what is moved keeps its order.
///
///     update a, gather a, gather b, reduce c, update c        while gather a runs, c is made:
///     update a, gather a, reduce c, gather b, update c
IssueOrder yielding(const InstructionTable& table, const IssueOrder& order,
                    std::span<const OverlappedTimeline::Span> spans);

}  // namespace shardplan
