#pragma once

#include <span>

#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// Issues every collective right before the first kernel that ends behind its beginning: while the links are busy with others
/// nothing is gained by issuing it, but what it makes is held from then on. `spans` are those of the order, by place; a step
/// without a loop of micro-batches keeps them. Buckets stay in one piece, collectives that share links keep their order, and
/// what runs in pieces beside its product stays beside it.
///
///     gather a, gather b, use x, use a, use b        with the links busy with a until x is done:
///     gather a, use x, gather b, use a, use b
IssueOrder issued_late(const InstructionTable& table, const IssueOrder& order,
                       std::span<const OverlappedTimeline::Span> spans);

}  // namespace shardplan
