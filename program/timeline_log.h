#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shardplan {

struct TableOrder;  // program/instruction_table.h

/// All that the simulation of a step ran (program/overlapped_timeline.h), every run of every instruction, in the order of
/// issue. Runs of the loop that were not simulated are left out of the order and of the times: it is the log of a step of
/// so many micro-batches fewer. Each of them is as the run `typical`, which stands where they do: what it issues ends within
/// runs that follow it.
struct TimelineLog {
  /// What ran without a pause: a collective or bucket, what takes no time, a kernel, or one part of a product that runs
  /// beside collectives in pieces (up to what issues its scatter, up to where it needs the last pieces that are gathered,
  /// behind that).
  struct Stretch {
    Picoseconds begin = 0;
    Picoseconds end = 0;
    Picoseconds alone = 0;    // what it would take with nothing beside it
    std::uint32_t place = 0;  // in the order; of a bucket the first member's
  };
  std::vector<Stretch> stretches;
  /// Of the loop: where each run begins in `stretches`, then where the last ends; without a last run that issues what
  /// stands behind the loop (program/last_run.h).
  std::vector<std::size_t> runs;
  std::size_t typical = 0;
  std::int64_t skipped = 0;  // runs that were not simulated
  Picoseconds end = 0;       // of the step, with all runs
};
/// Defined beside the simulation, in program/overlapped_timeline.cc.
TimelineLog timeline_log(const TableOrder& order);

}  // namespace shardplan
