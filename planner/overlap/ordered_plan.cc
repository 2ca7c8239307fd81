#include "planner/overlap/ordered_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "planner/plan_notices.h"
#include "program/buckets.h"
#include "program/memory_profile.h"
#include "program/overlapped_timeline.h"
#include "program/schedule.h"

namespace shardplan {
namespace {

/// Whether the user asks to join some collectives.
bool asks_for_buckets(const Model& model, const OperatorGraph& graph) {
  return model.parallel.comm_fusion.asks_for_some() ||
         std::any_of(graph.tensors().begin(), graph.tensors().end(),
                     [](const GraphTensor& tensor) { return tensor.comm_fusion.value_or(0) > 0; });
}

ScheduleOptions schedule_options(const Plan& plan, const Model& model, bool asks_for_buckets) {
  ScheduleOptions options;
  options.reorders = plan.options.level != Level::kMemory;  // its bound is about the order of the graph
  options.most_memory =
      options.reorders || asks_for_buckets ? std::max(plan.usable, plan.memory.peak) : plan.memory.peak;
  options.lists_kernels = plan.options.level == Level::kSpeed && plan.options.reorders_kernels;
  options.fusions = model.parallel.comm_fusion;
  return options;
}

}  // namespace

Plan ordered_plan(Plan plan, const Model& model, const OperatorGraph& graph, const CostModel& costs,
                  const OrderEffort& effort) {
  const bool asks = asks_for_buckets(model, graph);
  const auto say_unjoined = [&](const char* why) {
    const std::string text = fmt::format("comm_fusion has no effect: every collective runs separately ({})", why);
    if (asks) add_notice(plan.notices, text);
  };
  if (plan.program.instructions.empty()) return plan;
  if (plan.program.workers > 1) {
    say_unjoined("place");
    return plan;
  }
  if (!plan.options.overlap) {
    say_unjoined("--overlap off");
    return plan;
  }
  ScheduleOptions options = schedule_options(plan, model, asks);
  options.step_to_beat = effort.step_to_beat;
  options.prefers_lean = effort.prefers_lean || effort.is_final;
  options.is_final = effort.is_final;
  std::optional<std::string> unused = unused_fusion_index(plan.program, graph, options.fusions);
  if (options.reorders) plan.memory = {};  // is another then, and that of a million operators takes much memory itself
  const std::optional<OrderRule> rule = schedule(plan.program, graph, *costs.collectives(), options);
  if (!rule) {
    if (options.reorders) plan.memory = memory_profile(plan.program);
    say_unjoined("no order with its buckets fits in memory");
    return plan;
  }
  if (unused) add_notice(plan.notices, *std::move(unused));
  plan.is_overlapped = true;
  plan.order_rule = *rule;
  const OverlappedTimeline times = overlapped_timeline(plan.program);
  if (options.reorders || !plan.program.buckets.empty()) plan.memory = memory_profile(plan.program, times);
  plan.time.exposed = times.exposed();
  return plan;
}

std::optional<Picoseconds> step_by_rule_of(const Plan& like, const ParallelProgram& program, const CostModel& costs,
                                           bool is_refined) {
  const ScheduleOptions options = schedule_options(like, *like.model, asks_for_buckets(*like.model, *like.graph));
  return step_by_rule(program, *like.graph, *costs.collectives(), options, like.order_rule, is_refined);
}

}  // namespace shardplan
