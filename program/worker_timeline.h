#pragma once

#include <vector>

#include "program/overlapped_timeline.h"
#include "program/parallel_program.h"

namespace shardplan {

/// What one worker does in a step.
struct WorkerUse {
  Picoseconds computation = 0;
  Picoseconds collectives = 0;  // among its own devices
  Picoseconds sending = 0;      // to other workers, and from them
  Picoseconds receiving = 0;
  std::size_t operators = 0;  // kernels in one run of the sequence
  std::size_t sends = 0;
  std::size_t receives = 0;
  Bytes sent = 0;              // by each of its devices, per step
  std::int64_t in_flight = 1;  // maximal number of micro-batches begun and not finished

  Picoseconds communication() const { return collectives + sending + receiving; }
  Picoseconds busy() const { return computation + communication(); }
};

/// When instructions run on workers that do one thing after the other. A send starts when both of its workers have
/// reached it, and occupies both until it is done. A worker that has done its part of one micro-batch continues with
/// the next.
struct WorkerTimeline {
  std::vector<OverlappedTimeline::Span> spans;  // by instruction; of its first run
  Picoseconds end = 0;                          // when the last worker has finished the step
  std::vector<WorkerUse> workers;

  /// The worker that is busy longest; at a tie the first.
  const WorkerUse& busiest() const;
};
WorkerTimeline worker_timeline(const ParallelProgram& program);

/// A lower bound on the step over all orders of the same instructions on the same workers. For each worker: the
/// shortest, over its instructions, of the longest paths that lead to them, plus all its work, plus the shortest of
/// the longest paths that follow.
Picoseconds least_step(const ParallelProgram& program);

}  // namespace shardplan
