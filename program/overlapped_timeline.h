#pragma once

#include <cstdint>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

struct TableOrder;  // program/instruction_table.h

/// When instructions run where kernels and collectives have streams of their own (docs/cost-model.md):
///   - Kernels run one after the other, in program order.
///   - A collective is issued when the kernels before it in the sequence are done, begins once its input is there and the
///     levels of links that it uses are free, and is waited for by the first reader of its output. Collectives that
///     share a level run in program order; on different levels they run at the same time.
///   - A gather in pieces (`Instruction::in_pieces`) and a product that reads it begin together, of so many pieces as its
///     group has devices; the product's last piece waits for the gather's end. A scatter in pieces right behind the product
///     that it is for begins when the first piece of that is done, and ends no sooner than the product.
///   - A bucket (`ParallelProgram::buckets`) is one collective: it begins when the inputs of all members are there.
///   - What is issued in the last run of the loop (program/last_run.h) is issued there, behind what makes its inputs.
///   - While a kernel and collectives run at the same time, each runs at the share of its speed that the least of the
///     levels in use leaves it (`ParallelProgram::speeds_together`).
/// Equal programs give equal times.
struct OverlappedTimeline {
  struct Span {
    Picoseconds begin = 0;
    Picoseconds end = 0;

    bool operator==(const Span&) const = default;
  };
  std::vector<Span> spans;             // by instruction; of its first run, where it runs with every micro-batch
  std::vector<Picoseconds> last_run;   // when the loop's instructions that are kernels begin in its last run; by
                                       // instruction, empty if that issues nothing of its own (program/last_run.h)
  Picoseconds end = 0;                 // when all kernels and collectives are done
  Picoseconds computation = 0;         // all kernels together, each as long as it takes alone
  Picoseconds communication = 0;       // all collectives together, likewise; a bucket is one
  std::vector<Picoseconds> link_busy;  // by level of links, likewise
  Picoseconds exposed() const { return end - computation; }  // waiting, and what kernels lose while collectives run
};
OverlappedTimeline overlapped_timeline(const ParallelProgram& program);
/// The same of one order of a table; spans are by place.
OverlappedTimeline overlapped_timeline(const TableOrder& order);

}  // namespace shardplan
