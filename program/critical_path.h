#pragma once

#include <vector>

#include "base/units.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The critical path of a step (Kelley and Walker, "Critical-path planning and scheduling", 1959): the instruction
/// that ends last, what it waited for when it started, and so on back to the beginning. An instruction waits for the
/// latest to end of these:
///   - a kernel for the previous kernel, and for the producers of its inputs;
///   - a collective or bucket for the previous kernel in the sequence, for the producers of its inputs, and for the
///     previous collective on each of its levels of links;
///   - a product beside a gather in pieces, for its last piece, for the end of that gather.
/// At a tie it is the previous kernel, else a producer. So at every moment the path runs through exactly one kernel
/// or collective, and its times add up to the step:
///
///     kernel 10, all_reduce 7 of its result beside a kernel 5, kernel 3 that reads both:  10 + 7 + 0 + 3 = 20
///
/// A collective on the path need not be exposed: it may lie between a kernel that overlaps with it and one that waits
/// for it.
///
/// Every iteration of the micro-batch loop is followed separately. Iterations that the timeline does not simulate,
/// because they take as long as the previous one, count like that one. (Only for a loop that does not become periodic
/// within 256 iterations the result is not exact: the sum is, but its parts are those of the last iterations.)
struct CriticalPath {
  struct Share {
    Picoseconds time = 0;  // of the step, summed over all runs
    Picoseconds slowed =
        0;  // part of `time` that is slowdown by concurrent instructions (`ParallelProgram::speeds_together`)

    bool operator==(const Share&) const = default;
  };
  std::vector<Share> shares;  // by instruction; for a bucket at its first member
};
/// Requires one worker: several workers (`place`) wait for each other by other rules (program/worker_timeline.h). The
/// times add up to `overlapped_timeline(program).end`.
CriticalPath critical_path(const ParallelProgram& program);

}  // namespace shardplan
