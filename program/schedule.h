#pragma once

#include <optional>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

struct ScheduleOptions {
  Bytes most_memory = 0;  // that an order may hold while collectives run beside kernels
  bool reorders = true;   // false: the order given, or nothing
  /// Gradients and updated weights of one group and dtype are communicated together once they are so large.
  Bytes bucket_bytes = Bytes{64} << 20;
};

/// The same instructions in the order in which they hide the most communication (program/overlapped_timeline.h), with
/// fusion ids for those that are communicated together. Nothing else is changed, so that what is executed stays what is
/// printed. Never slower than the order given if that fits; nothing if no order that was tried does.
std::optional<ParallelProgram> scheduled(const ParallelProgram& program, const OperatorGraph& graph,
                                         const ScheduleOptions& options);

}  // namespace shardplan
