#pragma once

#include <optional>

#include "costmodel/cost_model.h"
#include "planner/plan.h"

namespace shardplan {

/// How much is done to find a good order.
struct OrderEffort {
  std::optional<Picoseconds> step_to_beat = {};  // an order that takes far longer is not refined
  bool prefers_lean = false;                     // `ScheduleOptions::prefers_lean`; implied by the next
  bool is_final = false;                         // of the plan that is reported (`ScheduleOptions::is_final`)
};

/// The plan with overlap, in the order that hides the most communication (program/schedule.h), with the memory and
/// step of that order; notices say why collectives that the user wants joined are not. Unchanged if nothing may
/// overlap (`PlanOptions::overlap` off, several workers).
Plan ordered_plan(Plan plan, const Model& model, const OperatorGraph& graph, const CostModel& costs,
                  const OrderEffort& effort = {});

/// An estimate of the step of a program similar to that of `like`: in an order made by the rule that made the order
/// of `like`, refined or not. Nothing if that order does not fit.
std::optional<Picoseconds> step_by_rule_of(const Plan& like, const ParallelProgram& program, const CostModel& costs,
                                           bool is_refined);

}  // namespace shardplan
