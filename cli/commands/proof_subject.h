#pragma once

#include "cli/commands/planning_options.h"
#include "report/proof_report.h"

namespace shardplan {

/// What the first line of a proof or a simulation says.
ValidationSubject subject_of(const Plan& plan, const PlanningArguments& arguments);

/// As given, else one for each core.
int threads_of(const PlanningArguments& arguments);

}  // namespace shardplan
