#pragma once

#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// The times of a step without overlap: instructions run one after the other, so a step takes the sum of all times
/// and all communication is exposed.
struct Timeline {
  std::vector<Picoseconds> starts;  // by instruction; of its first run if it runs with every micro-batch
  Picoseconds end = 0;              // when the step ends
  Picoseconds computation = 0;      // sum over the step
  Picoseconds communication = 0;
  Picoseconds exposed = 0;  // communication during which nothing is computed: end - computation
};
Timeline timeline(const ParallelProgram& program);

/// All communication of a step, with every bucket as the one collective that it is.
Picoseconds joined_communication(const ParallelProgram& program);

/// The part of the contractions' time that is spent on work that another device does too.
Picoseconds repeated_time(const ParallelProgram& program);

/// The summed times of one pass's instructions in a step.
struct PassTimes {
  Picoseconds computation = 0;
  Picoseconds communication = 0;
};
PassTimes pass_times(const ParallelProgram& program, Pass pass);

}  // namespace shardplan
