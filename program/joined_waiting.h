#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/overlapped_timeline.h"

namespace shardplan {

/// What an instruction may be joined with: all of its key, above 0, in the same region (the loop of micro-batches or what is
/// behind it).
struct JoinKey {
  std::uint32_t key = 0;  // 0: nothing
  Bytes bytes = 0;
};

/// By instruction: of the collectives of `joinable_collectives` and of gathers of what is stored (program/prefetch.h) those
/// that `fusions` and the parameters' fusion ids leave to the schedule.
std::vector<JoinKey> join_keys(const InstructionTable& table, const OperatorGraph& graph, const CommFusions& fusions,
                               std::span<const JoinableCollective> joinable);

/// Joins what waits for its links: when a collective begins, all of its key that are ready by then become one bucket with it,
/// those first that would begin first, up to `most` bytes together. Each pays one start-up less, and none waits for an
/// input of another one. `spans` are those of `order`, by place, which is `given`; `keys` are by instruction. Of buckets all
/// members have one key.
///
///     reduce a (30 us) from 10 us, reduce b, ready at 20 us, reduce c at 35 us:    b waits until 40 us, and then has c with it
///     reduce a, reduce b and c
IssueOrder joined_waiting(const TableOrder& order, std::span<const OverlappedTimeline::Span> spans,
                          const IssueOrder& given, std::span<const JoinKey> keys, Bytes most);

}  // namespace shardplan
