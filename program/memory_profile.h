#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/overlapped_timeline.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Bytes in use on one device (all of a worker hold the same) while each instruction runs, and at the peak.
///
/// An instruction holds its inputs, its outputs and all that is read later. A view stands in the memory of what it is a
/// view of, which is freed after the last reader of both; the new value of a parameter or state is written over the old
/// one where that is no longer read. What a kernel of several operators keeps in registers takes none. A bucket holds its
/// buffer while it runs; what all_reduce leaves there are views of it. Parameters and states stay, inputs go after their
/// last reader, the sum of an accumulating operator lives from the first instruction of the loop. Where workers overlap
/// micro-batches, each micro-batch in flight holds its own.
struct MemoryProfile {
  struct Alive {
    ValueId value;
    Bytes bytes = 0;
  };
  std::vector<Bytes>
      bytes;  // by instruction, the most of its runs: on the worker that runs it; of a send, that receives
  std::vector<Bytes> worker_peaks;   // by worker
  Bytes peak = 0;                    // of the worker that holds most
  std::size_t peak_instruction = 0;  // the first that holds as much
  std::vector<Alive> alive_at_peak;  // largest first
};
MemoryProfile memory_profile(const ParallelProgram& program);
/// The same where collectives run beside kernels (`overlapped_timeline`): one holds its input until it ends, while later
/// instructions run. What the last run of the loop reduces is freed in that run; the runs before it hold it.
MemoryProfile memory_profile(const ParallelProgram& program, const OverlappedTimeline& times);
/// The peak of an order of a table, of one worker. Without `times` instructions run one after the other.
Bytes memory_peak(const TableOrder& order, const OverlappedTimeline* times);

}  // namespace shardplan
