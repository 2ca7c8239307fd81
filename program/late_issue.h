#pragma once

#include <span>

#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// Issues every collective right before the first kernel that ends after the collective starts: while the links are
/// busy with others, issuing it gains nothing, but its result occupies memory. `spans` are those of the order, by
/// position; a step without a micro-batch loop keeps them. Buckets stay together, collectives that share links keep
/// their order, and collectives in pieces stay beside their product.
///
///     gather a, gather b, use x, use a, use b        with the links busy with a until x is done:
///     gather a, use x, gather b, use a, use b
IssueOrder issued_late(const InstructionTable& table, const IssueOrder& order,
                       std::span<const OverlappedTimeline::Span> spans);

}  // namespace shardplan
