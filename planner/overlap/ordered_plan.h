#pragma once

#include <optional>

#include "costmodel/cost_model.h"
#include "planner/plan.h"

namespace shardplan {

/// The plan, its program's collectives beside its kernels in the order that hides the most of them (program/schedule.h), with
/// the memory and the step of that; notices say why what the user wants joined is not. Unchanged where nothing may overlap
/// (`PlanOptions::overlap`, several workers). An order that lies far above `step_to_beat` is not refined.
Plan ordered_plan(Plan plan, const Model& model, const OperatorGraph& graph, const CostModel& costs,
                  std::optional<Picoseconds> step_to_beat = {});

/// About what the step of a program takes that is like the plan's: in the order of the rule by which the plan's was made, itself
/// or refined. Nothing where that does not fit.
std::optional<Picoseconds> step_by_rule_of(const Plan& like, const ParallelProgram& program, const CostModel& costs,
                                           bool is_refined);

}  // namespace shardplan
