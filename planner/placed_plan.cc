#include "planner/placed_plan.h"

#include "planner/worker_groups.h"
#include "program/place_program.h"
#include "program/timeline.h"
#include "program/worker_timeline.h"

namespace shardplan {

void divide(Plan& plan, const OperatorGraph& graph, const Cluster& cluster, int workers) {
  const SendTime send_time = send_time_of(cluster, plan.program.mesh.num_devices());
  plan.program = place_program(plan.program, graph, workers, send_time);
  plan.memory = memory_profile(plan.program);
  const WorkerTimeline times = worker_timeline(plan.program);
  const WorkerUse& busiest = times.busiest();
  plan.time = {busiest.computation, busiest.communication(), times.end - busiest.computation,
               repeated_time(plan.program)};
}

void judge_divided(Plan& plan) {
  const Level level = plan.options.level;
  plan.cost = value_at(level, plan.time, plan.memory.peak);
  if (level == Level::kSpeed) plan.cost.amount = plan.time.step();
  const bool is_only_one = plan.mesh.num_devices() == 1;
  plan.bound = is_only_one ? plan.cost : LevelValue{level, 0};
  plan.status = !plan.fits() ? PlanStatus::kNoPlanFound : is_only_one ? PlanStatus::kOptimal : PlanStatus::kFeasible;
}

}  // namespace shardplan
