#pragma once

#include <cstdint>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

struct TableOrder;  // program/instruction_table.h

/// When instructions run if kernels and collectives have separate streams (docs/cost-model.md):
///   - Kernels run one after the other, in program order.
///   - A collective is issued when the kernels before it in the sequence are done, starts once its input is ready and
///     the levels of links that it uses are free, and the first reader of its output waits for it. Collectives that
///     share a level run in program order; on different levels they run at the same time.
///   - A gather in pieces (`Instruction::in_pieces`) and a product that reads it start together, with as many pieces
///     as the group has devices; the product's last piece waits for the end of the gather, also where it reads two
///     gathers with different numbers of pieces. A scatter in pieces right
///     after its product starts when the first piece of the product is done, and ends no earlier than the product.
///   - A bucket (`ParallelProgram::buckets`) is one collective: it starts when the inputs of all members are ready.
///   - Collectives issued in the last iteration of the loop (program/last_run.h) are issued after the producers of
///     their inputs.
///   - While a kernel and collectives run at the same time, each runs at the fraction of its speed that the worst of
///     the levels in use leaves it (`ParallelProgram::speeds_together`).
/// Equal programs give equal times.
struct OverlappedTimeline {
  struct Span {
    Picoseconds begin = 0;
    Picoseconds end = 0;

    bool operator==(const Span&) const = default;
  };
  std::vector<Span> spans;             // by instruction; of its first run if it runs with every micro-batch
  std::vector<Picoseconds> last_run;   // when the loop's instructions that are kernels begin in its last run; by
                                       // instruction, empty if that issues nothing of its own (program/last_run.h)
  Picoseconds end = 0;                 // when all kernels and collectives are done
  Picoseconds computation = 0;         // sum of all kernels, each at full speed
  Picoseconds communication = 0;       // sum of all collectives, likewise; a bucket is one
  std::vector<Picoseconds> link_busy;  // busy time by level of links, likewise
  Picoseconds exposed() const { return end - computation; }  // waiting, and the slowdown of kernels by collectives
};
OverlappedTimeline overlapped_timeline(const ParallelProgram& program);
/// The same for one order of a table; spans are by position.
OverlappedTimeline overlapped_timeline(const TableOrder& order);

}  // namespace shardplan
