#include "planner/plan.h"

#include <algorithm>
#include <utility>

#include "base/integer.h"
#include "program/timeline.h"
#include "program/worker_timeline.h"

namespace shardplan {

StepTime time_in_sequence(const ParallelProgram& program) {
  const Timeline times = timeline(program);
  return {times.computation, times.communication, times.exposed, repeated_time(program)};
}

std::string_view to_string(StrategyCosts costs) { return costs == StrategyCosts::kMindSpore ? "mindspore" : "cluster"; }

LevelValue value_at(Level level, const StepTime& time, Bytes peak) {
  switch (level) {
    case Level::kRatio:
      return {level, time.communication};
    case Level::kMemory:
      return {level, peak};
    case Level::kSpeed:
      break;
  }
  return {level, time.additive()};
}

std::vector<OverlappedTimeline::Span> Plan::spans() const {
  if (program.workers > 1) return worker_timeline(program).spans;
  if (is_overlapped) return overlapped_timeline(program).spans;
  const Timeline times = timeline(program);
  std::vector<OverlappedTimeline::Span> spans;
  for (std::size_t i = 0; i < times.starts.size(); ++i) {
    spans.push_back({times.starts[i], times.starts[i] + program.instructions[i].time});
  }
  return spans;
}

Picoseconds Plan::time_of_peak() const {
  const std::size_t at = memory.peak_instruction;
  if (memory.is_peak_of_last_run && is_overlapped && program.workers == 1) {
    const std::vector<Picoseconds> last_run = overlapped_timeline(program).last_run;  // in order; 0 for collectives
    if (at < last_run.size()) return *std::max_element(last_run.begin(), last_run.begin() + at + 1);
  }
  return counted_from()[at];
}

std::vector<Picoseconds> Plan::counted_from() const {
  std::vector<Picoseconds> times;
  for (const OverlappedTimeline::Span& span : spans()) {
    times.push_back(times.empty() ? span.begin : std::max(times.back(), span.begin));
  }
  return times;
}

bool has_given_layouts(const Plan& plan) {
  const auto is_set = [](char flag) { return flag != 0; };
  return std::ranges::any_of(plan.is_user_strategy, is_set) || std::ranges::any_of(plan.is_by_mode, is_set) ||
         std::ranges::any_of(plan.graph->operators(), &GraphOperator::is_data_parallel) ||
         std::ranges::any_of(plan.graph->tensors(),
                             [](const GraphTensor& tensor) { return tensor.layout || tensor.pins; });
}

std::optional<double> open_gap(const Plan& plan) {
  if (!plan.overlapped_bound) return gap(plan.cost, plan.bound);
  return gap({Level::kSpeed, plan.time.step()}, {Level::kSpeed, *plan.overlapped_bound});
}

bool is_better(const Plan& plan, const Plan& than) {
  const auto is_found = [](const Plan& any) { return !any.strategies.empty() && any.fits(); };
  if (!is_found(plan)) return false;
  if (!is_found(than)) return true;
  switch (than.options.level) {
    case Level::kRatio:
      return std::pair(plan.time.communication, plan.time.computation) <
                 std::pair(than.time.communication, than.time.computation) &&
             plan.time.repeated <= than.time.repeated;
    case Level::kMemory: {
      const auto slack_ppm = static_cast<std::int64_t>(than.options.memory_slack * 1e6 + 0.5);
      const Bytes peak = plan.peak_in_sequence;
      const Bytes most = peak + multiply_divide(peak, slack_ppm, 1'000'000);
      return than.peak_in_sequence > most ||
             (peak <= than.peak_in_sequence && plan.time.additive() < than.time.additive());
    }
    case Level::kSpeed:
      // A plan in sequence takes the sum.
      if (plan.is_overlapped || than.is_overlapped) return plan.time.step() < than.time.step();
      return plan.time.additive() < than.time.additive();
  }
  return false;
}

}  // namespace shardplan
