#pragma once

#include <string>
#include <vector>

#include "cli/commands/planning_options.h"
#include "cli/commands/simulate_arguments.h"
#include "simulator/checkpoint/checkpoint.h"

namespace shardplan {

/// `plan` for a model written per device: its costs. `out` is a folder for plan.json and every rank's IR; empty: none.
/// Throws InputError for options that have no effect on such a model.
int plan_local_model(const WrittenPerDevice& found, const PlanningArguments& arguments, const std::string& out,
                     bool json);

/// `validate MODEL --against FILE`.
int validate_local_model(const WrittenPerDevice& found, const PlanningArguments& arguments,
                         const std::string& reference, int steps, bool json);

/// `simulate MODEL`, with its checkpoints. Throws InputError for options that have no effect on such a model.
int simulate_local_model(const WrittenPerDevice& found, const SimulateArguments& arguments);

/// The target of `checkpoint transform --plan MODEL`. Throws InputError for options that have no effect on such a
/// model, and as `form_for_ranks`.
CheckpointForm local_model_form(const WrittenPerDevice& found, const PlanningArguments& arguments,
                                const Checkpoint& checkpoint, std::vector<std::string>& notices);

}  // namespace shardplan
