#pragma once

#include "cli/commands/planning_options.h"
#include "report/proof_report.h"

namespace shardplan {

/// The first line of a proof or a simulation.
ValidationSubject subject_of(const Plan& plan, const PlanningArguments& arguments);

/// The given number, else one per core.
int threads_of(const PlanningArguments& arguments);

}  // namespace shardplan
