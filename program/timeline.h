#pragma once

#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// When the instructions of a step run on every device. Today they run one after the other, each with all of its time,
/// so that a step takes what its instructions take together and all communication is exposed.
struct Timeline {
  std::vector<Picoseconds> starts;  // by instruction; of its first run, where it runs with every micro-batch
  Picoseconds end = 0;              // when the step ends
  Picoseconds computation = 0;      // together, in a step
  Picoseconds communication = 0;
  Picoseconds exposed = 0;  // communication during which nothing is computed: end - computation
};
Timeline timeline(const ParallelProgram& program);

/// The part of the contractions' time that is spent on work that another device does as well.
Picoseconds repeated_time(const ParallelProgram& program);

/// The summed times of one pass's instructions in a step.
struct PassTimes {
  Picoseconds computation = 0;
  Picoseconds communication = 0;
};
PassTimes pass_times(const ParallelProgram& program, Pass pass);

}  // namespace shardplan
