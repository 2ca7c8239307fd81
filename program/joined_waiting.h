#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// The instructions with which an instruction may be joined: those with the same key above 0, in the same region (the
/// micro-batch loop or the part after it).
struct JoinKey {
  std::uint32_t key = 0;  // 0: nothing
  Bytes bytes = 0;
};

/// By instruction, the keys of those collectives of `joinable_collectives` and gathers of stored tensors
/// (program/prefetch.h) that `fusions` and the parameters' fusion ids leave to the schedule.
std::vector<JoinKey> join_keys(const InstructionTable& table, const OperatorGraph& graph, const CommFusions& fusions,
                               std::span<const JoinableCollective> joinable);

/// Joins collectives that wait for their links: when a collective starts, those with its key that are ready by then
/// form a bucket with it, in the order in which they would start, up to `most` bytes in total. Each saves one start-up,
/// and none waits for another's input. `spans` are those of `order`, by position, which corresponds to `given`; `keys`
/// are by instruction. All members of an existing bucket have one key.
///
///     reduce a (30 us) from 10 us, reduce b, ready at 20 us, reduce c at 35 us:    b waits until 40 us, joined by c
IssueOrder joined_waiting(const TableOrder& order, std::span<const OverlappedTimeline::Span> spans,
                          const IssueOrder& given, std::span<const JoinKey> keys, Bytes most);

}  // namespace shardplan
