#include "report/plan/trace.h"

#include <algorithm>
#include <bit>

#include "base/json_text.h"
#include "program/instruction_facts.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/step_path.h"
#include "report/plan/fusion_report.h"

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
  return json_document({{"displayTimeUnit", "ms"}, {"traceEvents", events}});
}

}  // namespace shardplan
