#include "cli/commands/proof_subject.h"

#include <algorithm>
#include <thread>

namespace shardplan {

ValidationSubject subject_of(const Plan& plan, const PlanningArguments& arguments) {
  return {.model = plan.model->name,
          .is_training = plan.graph->is_training(),
          .level = plan.options.level,
          .mesh = plan.mesh,
          .argument = arguments.model,
          .seed = arguments.seed.value_or(0),
          .workers = plan.program.workers};
}

int threads_of(const PlanningArguments& arguments) {
  return arguments.threads.value_or(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace shardplan
