#pragma once

#include <optional>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "layouts/collective.h"
#include "model/model.h"
#include "program/order_rule.h"
#include "program/parallel_program.h"

namespace shardplan {

struct ScheduleOptions {
  Bytes most_memory = 0;  // limit for an overlapped order
  bool reorders = true;  // false: the given order, except for what `fusions` and the parameters' fusion ids ask to join
  bool lists_kernels = true;  // also try list scheduling (program/list_order.h)
  CommFusions fusions = {};   // which gradients and updated weights are communicated together
  // If the order takes far longer than this before refinement, it is not refined; not set: every order is refined.
  std::optional<Picoseconds> step_to_beat = {};
  bool prefers_lean = false;  // of orders that take within 0.5 % as long, one that needs 10 % less memory
  bool is_final = false;      // also justifies the order by the serial scheme, again and again as long as that helps
};

/// Brings the instructions into the order that hides the most communication (program/overlapped_timeline.h), and
/// forms buckets of collectives that run as one (`ParallelProgram::buckets`). Nothing else changes, so the values
/// stay the same. `costs` are those of the program's times.
///
/// A parameter's own fusion id (`GraphTensor::comm_fusion`) takes precedence over `fusions`: 0 is never joined;
/// parameters with the same other id, kind, group and dtype form one bucket. Kinds of mode `best` take the buckets
/// that hide the most: none, buckets of one of sixteen sizes, or the boundaries that `best_buckets` finds.
///
/// Unless the user requests fusions, the result is never slower than the given order if that fits. Returns the rule
/// of the order that was refined; nothing, with the order unchanged, if no order that was tried fits. The given
/// program must have no buckets.
std::optional<OrderRule> schedule(ParallelProgram& program, const OperatorGraph& graph, const CollectiveCosts& costs,
                                  const ScheduleOptions& options);

/// The end of the step in the order that a rule makes, refined or not; nothing if it does not fit or there is no such
/// order.
std::optional<Picoseconds> step_by_rule(const ParallelProgram& program, const OperatorGraph& graph,
                                        const CollectiveCosts& costs, const ScheduleOptions& options,
                                        const OrderRule& rule, bool is_refined);

}  // namespace shardplan
