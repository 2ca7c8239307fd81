#include "cli/commands/proof_subject.h"

#include <algorithm>
#include <thread>

namespace shardplan {

ValidationSubject subject_of(const Plan& plan, const PlanningArguments& arguments) {
  return {plan.model->name, plan.graph->is_training(), plan.options.level,
          plan.mesh,        arguments.model,           arguments.seed.value_or(0)};
}

int threads_of(const PlanningArguments& arguments) {
  return arguments.threads.value_or(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace shardplan
