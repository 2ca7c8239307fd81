#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// How early a block may be recomputed: once the gradient it is needed for is ready, or once the gradient of the
/// previous block (in the order of the backward pass) is ready. With one block ahead two blocks may be held at once,
/// and kernels have more work while they wait for communication.
enum class Recomputation { kInTime, kOneBlockAhead };

/// How a list of priorities becomes a schedule (Kolisch, European Journal of Operational Research 90, 1996).
///   parallel   in the order of time: whenever a stream is free, it takes the ready instruction of highest priority. No
///              stream stays idle while something could run, even if a more urgent instruction then has to wait for it.
///   serial     in the order of priorities: each instruction takes the first gaps of its streams that are long enough.
///              So nothing delays what is more urgent.
enum class ScheduleScheme { kParallel, kSerial };

/// The instructions by list scheduling (Graham, 1966): whenever the kernel stream is free, it takes the ready kernel
/// with the longest remaining path to the end of the step; levels of links do the same with collectives. So what
/// leads to long chains of communication runs first, and what can wait fills gaps: a parameter is updated in the
/// middle of the backward pass once its gradient has been reduced, and its new weight is gathered during the rest;
/// gradients of weights wait until a final chain of communication needs something to hide behind.
///
/// A new value, which overwrites the old one, waits until the old one is no longer read. Slowdowns, buckets and
/// memory are ignored. Gathers of stored tensors stay right before their first reader, and recomputation runs at most
/// one block ahead. The micro-batch loop and the instructions after it are ordered separately.
std::vector<std::uint32_t> list_order(const InstructionTable& table);

/// The same backwards from the end of the step: whenever the kernel stream or a link is free, counted from the end,
/// it takes, of the instructions that nothing unscheduled depends on, the one with the longest path from the
/// beginning. So what is followed by little communication runs last, and long communications at the end overlap with
/// gradients of weights that need little communication themselves.
std::vector<std::uint32_t> list_order_from_end(const InstructionTable& table);

/// An order and the time spans of its instructions, by position.
struct TimedOrder {
  const IssueOrder& order;
  std::span<const OverlappedTimeline::Span> spans;
};

/// List scheduling of an order whose times are known, including slowdowns and buckets. `justified_to_end` schedules
/// backwards, latest finish first, which moves everything as far to the end as possible; gathers of stored tensors
/// are scheduled too, and buckets stay together. `justified_to_beginning` schedules forwards, earliest start first,
/// which fills gaps of the order. One after the other they are the double justification of project scheduling (Valls,
/// Ballestin and Quintanilla, 2005), which rarely makes an order longer.
struct Justification {
  Recomputation recomputation = Recomputation::kOneBlockAhead;
  ScheduleScheme scheme = ScheduleScheme::kParallel;
};
std::vector<std::uint32_t> justified_to_end(const InstructionTable& table, const TimedOrder& timed,
                                            Justification how = {});
std::vector<std::uint32_t> justified_to_beginning(const InstructionTable& table, const TimedOrder& timed,
                                                  Justification how = {});

}  // namespace shardplan
