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
  Bytes most_memory = 0;      // that an order may hold while collectives run beside kernels
  bool reorders = true;       // false: the order given, but for what `fusions` and the parameters' fusion ids ask
  bool lists_kernels = true;  // list scheduling (program/list_order.h) is tried as well
  CommFusions fusions = {};   // which gradients and updated weights are communicated together
  // A program whose order takes far longer, before it is refined, is of no interest; nothing: every one is refined.
  std::optional<Picoseconds> step_to_beat = {};
};

/// Brings the instructions into the order in which they hide the most communication (program/overlapped_timeline.h), and makes
/// buckets of those that are communicated together (`ParallelProgram::buckets`). Nothing else is changed, so that what
/// is executed stays what is printed. `costs` are those of the program's times.
///
/// A parameter's own fusion id (`GraphTensor::comm_fusion`) decides before `fusions`: 0 joins it to none, others with
/// the same id of one kind, group and dtype are one bucket. Kinds of mode `best` take the buckets that hide the most:
/// none, of one of sixteen sizes, or between the boundaries that `best_buckets` finds.
///
/// Where nothing is asked for, never slower than the order given if that fits. Gives the rule of what was refined; nothing,
/// and the order given, if no order that was tried fits. The program given has no buckets.
std::optional<OrderRule> schedule(ParallelProgram& program, const OperatorGraph& graph, const CollectiveCosts& costs,
                                  const ScheduleOptions& options);

/// When the step ends in the order that a rule gives, itself or refined; nothing if that does not fit, or if there is no such
/// order.
std::optional<Picoseconds> step_by_rule(const ParallelProgram& program, const OperatorGraph& graph,
                                        const CollectiveCosts& costs, const ScheduleOptions& options,
                                        const OrderRule& rule, bool is_refined);

}  // namespace shardplan
