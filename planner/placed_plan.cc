#include "planner/placed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/plan_notices.h"
#include "planner/worker_groups.h"
#include "program/loop_order.h"
#include "program/place_program.h"
#include "program/timeline.h"
#include "program/worker_timeline.h"

namespace shardplan {

namespace {

void set_times(Plan& plan, const WorkerTimeline& times) {
  const WorkerUse& busiest = times.busiest();
  plan.time = {busiest.computation, busiest.communication(), times.end - busiest.computation,
               repeated_time(plan.program)};
}

/// The fastest order of micro-batches of those that fit.
void overlap_micro_batches(Plan& plan) {
  if (plan.program.num_in_micro_batch() == 0) return;
  WorkerTimeline fastest = worker_timeline(plan.program);
  const auto in_loop = static_cast<std::int64_t>(plan.program.num_in_micro_batch());
  if (plan.program.micro_batches > kMostTurns / in_loop) {
    add_notice(
        plan.notices,
        fmt::format(
            "micro-batches follow each other without overlap: {} of them with {} instructions each are more than "
            "the {} turns that are ordered",
            plan.program.micro_batches, in_loop, kMostTurns));
    return;
  }
  const Bytes most = std::max(plan.usable, plan.memory.peak);
  ParallelProgram program = plan.program;
  for (const std::vector<int>& in_flight : runs_in_flight_to_try(program)) {
    program.loop_order = overlapped_runs(program, in_flight);
    if (program.loop_order.turns.empty()) continue;
    WorkerTimeline times = worker_timeline(program);
    if (times.end >= fastest.end) continue;
    MemoryProfile memory = memory_profile(program);
    if (memory.peak > most) continue;
    plan.program.loop_order = program.loop_order;
    plan.memory = std::move(memory);
    fastest = std::move(times);
  }
  set_times(plan, fastest);
}

}  // namespace

void divide(Plan& plan, const OperatorGraph& graph, const Cluster& cluster, int workers) {
  const SendTime send_time = send_time_of(cluster, plan.program.mesh.num_devices());
  plan.program = place_program(plan.program, graph, workers, send_time);
  plan.memory = memory_profile(plan.program);
  set_times(plan, worker_timeline(plan.program));
  if (plan.options.overlap && plan.options.level != Level::kMemory) overlap_micro_batches(plan);
}

void judge_divided(Plan& plan, Picoseconds least) {
  const Level level = plan.options.level;
  plan.cost = value_at(level, plan.time, plan.memory.peak);
  if (level == Level::kSpeed) plan.cost.amount = plan.time.step();
  const bool is_only_one = plan.mesh.num_devices() == 1;
  plan.bound = !is_only_one             ? LevelValue{level, level == Level::kSpeed ? least : 0}
               : level == Level::kSpeed ? LevelValue{level, least_step(plan.program)}
                                        : plan.cost;
  const bool is_best = plan.bound.amount == plan.cost.amount;
  plan.status = !plan.fits() ? PlanStatus::kNoPlanFound : is_best ? PlanStatus::kOptimal : PlanStatus::kFeasible;
}

}  // namespace shardplan
