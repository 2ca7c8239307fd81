#include "report/plan/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/json_text.h"
#include "program/instruction_facts.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/step_path.h"
#include "report/plan/fusion_report.h"
#include "report/plan/loop_runs.h"

namespace shardplan {
namespace {

constexpr int kKernels = 0;

double microseconds(Picoseconds time) { return static_cast<double>(time) / 1e6; }

Json row_name(int row, const std::string& name) {
  return {{"ph", "M"}, {"pid", 0}, {"tid", row}, {"name", "thread_name"}, {"args", {{"name", name}}}};
}

/// The row of the outermost level of links; with several workers, the worker's row.
int row_of(const ParallelProgram& program, const Instruction& instruction) {
  if (program.workers > 1) return worker_of(program, instruction);
  return is_communication(instruction) ? 1 + std::countr_zero(std::max(instruction.links, 1u)) : kKernels;
}

/// "runs 2 to 8 of the loop".
std::string other_runs_text(std::int64_t micro_batches) {
  return micro_batches == 2 ? "run 2 of the loop" : fmt::format("runs 2 to {} of the loop", micro_batches);
}

std::string loop_note(const ParallelProgram& program) {
  return fmt::format(
      "The instructions of the loop over {} micro-batches are shown in its first run; the event '{}' stands for the "
      "others{}.",
      program.micro_batches, other_runs_text(program.micro_batches),
      program.loop_order.turns.empty() ? "" : ", of which some begin before the first has ended");
}

}  // namespace

std::string chrome_trace(const Plan& plan) {
  const std::vector<OverlappedTimeline::Span> spans = plan.spans();
  const CriticalPath path = step_path(plan);
  Json events = Json::array();
  const bool has_workers = plan.program.workers > 1;
  for (int worker = 0; has_workers && worker < plan.program.workers; ++worker) {
    events.push_back(row_name(worker, fmt::format("worker {}", worker)));
  }
  if (!has_workers) events.push_back(row_name(kKernels, "kernels"));
  for (std::size_t level = 0; !has_workers && level < plan.cluster.levels.size(); ++level) {
    events.push_back(row_name(1 + static_cast<int>(level), plan.cluster.levels[level].name));
  }
  for (std::size_t i = 0; i < spans.size();) {
    const Instruction& instruction = plan.program.instructions[i];
    const std::size_t end = end_of_bucket(plan.program, i);
    Json args = {{"pass", to_string(instruction.pass)}, {"runs", instruction.runs}};
    if (!path.shares.empty()) args["critical"] = path.shares[i].time > 0;
    if (is_communication(instruction)) {
      Bytes bytes = 0;
      for (std::size_t member = i; member < end; ++member) {
        bytes += group_bytes(plan.program, plan.program.instructions[member]);
      }
      args["group_bytes"] = bytes;
      args["joined"] = end - i;
    }
    const auto add_in = [&](int row) {
      events.push_back(
          {{"ph", "X"},
           {"pid", 0},
           {"tid", row},
           {"name", instruction.fusion > 0 ? bucket_name(plan.program, instruction.fusion) : instruction.name.str()},
           {"ts", microseconds(spans[i].begin)},
           {"dur", microseconds(spans[i].end - spans[i].begin)},
           {"args", args}});
    };
    if (spans[i].end > spans[i].begin) {
      add_in(row_of(plan.program, instruction));
      if (instruction.kind == InstructionKind::kSend) add_in(result_worker(plan.program, instruction));
    }
    i = end;
  }
  if (plan.program.micro_batches == 1) return json_document({{"displayTimeUnit", "ms"}, {"traceEvents", events}});
  for (int worker = 0; worker < plan.program.workers; ++worker) {
    const std::optional<OtherRuns> others = other_runs(plan, spans, worker);
    if (!others || others->begin == others->end) continue;
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", has_workers ? worker : kKernels},
                      {"name", other_runs_text(plan.program.micro_batches)},
                      {"ts", microseconds(others->begin)},
                      {"dur", microseconds(others->end - others->begin)},
                      {"args", {{"runs", plan.program.micro_batches - 1}}}});
  }
  const Json other_data = {{"note", loop_note(plan.program)}};
  return json_document({{"displayTimeUnit", "ms"}, {"otherData", other_data}, {"traceEvents", events}});
}

}  // namespace shardplan
