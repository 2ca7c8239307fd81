#pragma once

#include <vector>

#include "base/units.h"
#include "program/parallel_program.h"

namespace shardplan {

/// What the end of a step waits for (Kelley and Walker, "Critical-path planning and scheduling", 1959), back to its
/// beginning: what ends last, what that waited for when it began, and so on. What begins waits for one of these, namely
/// for the one that ends last:
///   - a kernel for the kernel before it, and for what makes its inputs;
///   - a collective or bucket for the kernel before it in the sequence, for what makes its inputs, and for the collective
///     before it on each of its levels of links;
///   - a product beside a gather in pieces, in its last piece, for that gather's end.
/// Of several that end together it is the kernel before, else what makes an input. So at every moment the path runs
/// through one kernel or one collective, never through none, and its times are those of the step:
///
///     kernel 10, all_reduce 7 of its result beside a kernel 5, kernel 3 that reads both:  10 + 7 + 0 + 3 = 20
///
/// A collective that is on the path for a moment need not be exposed then: it may stand between a kernel that runs beside
/// it and one that waits for it.
///
/// Every run of the loop of micro-batches is followed on its own. Runs that the timeline does not simulate, since they
/// take what the one before took, are passed through as that one. (Only a loop that does not come to rest within 256
/// runs is not exact: its sum is, what it is made of is then that of the last runs.)
struct CriticalPath {
  struct Share {
    Picoseconds time = 0;    // of the step, all runs together
    Picoseconds slowed = 0;  // part of `time` that is lost to what runs beside it (`ParallelProgram::speeds_together`)

    bool operator==(const Share&) const = default;
  };
  std::vector<Share> shares;  // by instruction; a bucket's is its first member's
};
/// Of kernels and collectives beside each other: the times add up to `overlapped_timeline(program).end`. Workers of their
/// own (`place`) wait for each other by rules of their own (program/worker_timeline.h): the program must have one.
CriticalPath critical_path(const ParallelProgram& program);

}  // namespace shardplan
