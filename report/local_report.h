#pragma once

#include <string>
#include <string_view>

#include "planner/local_plan.h"
#include "simulator/local/local_simulation.h"
#include "simulator/local/local_validation.h"

namespace shardplan {

/// The costs of a model written per device, as terminal text or as one JSON document ("shardplan.local_plan/1").
std::string local_plan_text(const LocalPlan& plan, const std::string& out_folder = {});
std::string local_plan_json(const LocalPlan& plan);

/// "shardplan.local_plan/1", and the JSON Schema of such a document.
std::string_view local_plan_schema_name();
std::string local_plan_schema();

/// step_parallel_end.ir of one rank: the operators it runs, including its communication.
std::string local_ir(const LocalPlan& plan, std::size_t rank);

/// The first line of a comparison or a simulation.
struct LocalSubject {
  std::string model;
  std::string reference;  // for a comparison
  std::size_t ranks = 1;
  std::uint64_t seed = 0;
  bool is_training = false;  // for a simulation
};

/// Every step next to the reference's, as terminal text or as one JSON document ("shardplan.local_validation/1").
std::string local_validation_text(const LocalSubject& subject, const LocalValidation& validation);
std::string local_validation_json(const LocalSubject& subject, const LocalValidation& validation);

/// The loss and other scalar outputs of every step on all ranks, as terminal text or as one JSON document
/// ("shardplan.local_simulation/1"). `first_step` is the number of steps made before.
std::string local_simulation_text(const LocalSubject& subject, const std::vector<LocalScalar>& scalars,
                                  std::int64_t first_step);
std::string local_simulation_json(const LocalSubject& subject, const std::vector<LocalScalar>& scalars,
                                  std::int64_t first_step);

}  // namespace shardplan
