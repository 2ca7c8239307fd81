#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/overlapped_timeline.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Bytes in use on one device (the same on all devices of a worker) while each instruction runs, and the peak.
///
/// An instruction holds its inputs, its outputs and everything that is read later. A view shares the memory of what
/// it is a view of, which is freed after the last reader of both. The new value of a parameter or state overwrites
/// the old one if that is no longer read. Values that a fused kernel keeps in registers take no memory. A bucket
/// holds its buffer while it runs; the results of an all_reduce bucket are views of it. Parameters and states stay,
/// inputs are freed after their last reader, and the sum of an accumulating operator lives from the first instruction
/// of the loop. If workers overlap micro-batches, each micro-batch in flight holds its own values.
struct MemoryProfile {
  struct Alive {
    ValueId value;
    Bytes bytes = 0;
  };
  std::vector<Bytes>
      bytes;  // by instruction, the maximum over its runs, on the worker that runs it (the receiver of a send)
  std::vector<Bytes> worker_peaks;   // by worker
  Bytes peak = 0;                    // of the worker that holds the most
  std::size_t peak_instruction = 0;  // the first with that usage
  bool is_peak_of_last_run = false;  // of the loop: earlier runs of that instruction hold less
  std::vector<Alive> alive_at_peak;  // largest first
};
MemoryProfile memory_profile(const ParallelProgram& program);
/// The same with overlap (`overlapped_timeline`): a collective holds its input until it ends, while later
/// instructions run. What the last iteration of the loop reduces is freed during that iteration; earlier iterations
/// hold it.
MemoryProfile memory_profile(const ParallelProgram& program, const OverlappedTimeline& times);
/// The peak of an order of a table, for one worker. Without `times` instructions run one after the other.
Bytes memory_peak(const TableOrder& order, const OverlappedTimeline* times);

}  // namespace shardplan
