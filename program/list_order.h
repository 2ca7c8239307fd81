#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// How early a block may be computed again: once the gradient is there that it is computed for, or that of the block before
/// it in the backward pass. Then two blocks may be held at once, and kernels have more to run while they wait for
/// what is communicated.
enum class Recomputation { kInTime, kOneBlockAhead };

/// The instructions by list scheduling (Graham, 1966): whenever the kernels' stream is free it takes, of the kernels whose
/// inputs are there, the one behind which most time must pass until the end of the step; so do the levels of links with
/// collectives. What leads to long chains of communication goes first, and what can wait fills the gaps: the update of a
/// parameter whose gradient has been reduced runs in the middle of the backward pass, and its new weight is gathered
/// beside the rest; gradients of weights wait until a chain at the end needs something to hide behind.
///
/// A new value waits until nothing reads the old one any more, over which it is written. Slowdowns, buckets and memory
/// are not looked at. What is gathered from stored tensors stays right before its first reader, and what is computed again
/// comes one block ahead at most. The loop of micro-batches and what is behind it are ordered each for itself.
std::vector<std::uint32_t> list_order(const InstructionTable& table);

/// The same from the end of the step backwards: whenever the kernels' stream or a link is free, counted from the end, it
/// takes what nothing is left to wait for and before which most time must pass since the beginning. So what communicates
/// little behind it runs last, and long communications at the end have gradients of weights beside them that need little
/// of the links themselves.
std::vector<std::uint32_t> list_order_from_end(const InstructionTable& table);

/// An order, and when its instructions run: a span for each place.
struct TimedOrder {
  const IssueOrder& order;
  std::span<const OverlappedTimeline::Span> spans;
};

/// List scheduling again, where an order is known with its times, slowdowns and buckets among them: from the end backwards,
/// what ends last first, so that everything moves as far to the end as it can. Gathers of stored tensors are scheduled as
/// well, and so are buckets, which stay together. Then from the beginning, what begins first first: gaps are filled that
/// the order had. One after the other this is the double justification of project scheduling (Valls, Ballestin and
/// Quintanilla, 2005), which seldom makes an order longer.
std::vector<std::uint32_t> justified_to_end(const InstructionTable& table, const TimedOrder& timed,
                                            Recomputation recomputation = Recomputation::kOneBlockAhead);
std::vector<std::uint32_t> justified_to_beginning(const InstructionTable& table, const TimedOrder& timed,
                                                  Recomputation recomputation = Recomputation::kOneBlockAhead);

}  // namespace shardplan
