#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shardplan {

struct TableOrder;  // program/instruction_table.h

/// A log of everything that the simulation of a step ran (program/overlapped_timeline.h): every run of every
/// instruction, in the order of issue. Iterations of the loop that were not simulated are omitted from the order and
/// the times, so it is the log of a step with that many fewer micro-batches. Each of them equals the run `typical`,
/// at whose position they belong: what it issues ends within the runs that follow it.
struct TimelineLog {
  /// A part of the step that ran without interruption: a collective or bucket, an instruction without time, a kernel,
  /// or one part of a product that runs beside collectives in pieces (up to the issue of its scatter, up to where it
  /// needs the last gathered pieces, and after that).
  struct Stretch {
    Picoseconds begin = 0;
    Picoseconds end = 0;
    Picoseconds alone = 0;    // its time at full speed
    std::uint32_t place = 0;  // position in the order; of a bucket that of the first member
  };
  std::vector<Stretch> stretches;
  /// For the loop: the start of each run in `stretches`, then the end of the last one; without a last iteration that
  /// issues collectives of the part after the loop (program/last_run.h).
  std::vector<std::size_t> runs;
  std::size_t typical = 0;
  std::int64_t skipped = 0;  // runs that were not simulated
  Picoseconds end = 0;       // of the step, with all runs
};
/// Defined with the simulation, in program/overlapped_timeline.cc.
TimelineLog timeline_log(const TableOrder& order);

}  // namespace shardplan
