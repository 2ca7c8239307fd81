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
  std::size_t operators = 0;  // kernels, in one run of the sequence
  std::size_t sends = 0;
  std::size_t receives = 0;
  Bytes sent = 0;              // by each of its devices, in a step
  std::int64_t in_flight = 1;  // micro-batches that it has begun and not finished, at most

  Picoseconds communication() const { return collectives + sending + receiving; }
  Picoseconds busy() const { return computation + communication(); }
};

/// When instructions run on workers that do one thing after the other. A send begins when both of its workers have come
/// to it, and keeps both until it is done. Micro-batches follow each other: a worker that has done its part of one goes
/// on to the next.
struct WorkerTimeline {
  std::vector<OverlappedTimeline::Span> spans;  // by instruction; of its first run
  Picoseconds end = 0;                          // when the last worker is done with the step
  std::vector<WorkerUse> workers;

  /// The worker that is busy longest; the first of several.
  const WorkerUse& busiest() const;
};
WorkerTimeline worker_timeline(const ParallelProgram& program);

/// No order of the same instructions on the same workers takes less: before a worker's first instruction comes at least
/// the shortest of the longest paths that lead to one of its instructions, then all that it does, then the shortest of
/// the longest paths behind one.
Picoseconds least_step(const ParallelProgram& program);

}  // namespace shardplan
