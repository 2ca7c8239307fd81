#include "report/plan/workers_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "graph/folded_names.h"
#include "program/worker_timeline.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

using WorkerAlign = TextTable::Align;

constexpr std::size_t kMostWorkers = 16;

/// The gain from overlapping micro-batches on the workers.
std::string pipeline_line(const Plan& plan) {
  if (plan.program.loop_order.turns.empty()) return "";
  const WorkerTimeline times = worker_timeline(plan.program);
  std::int64_t most = 1;
  for (const WorkerUse& use : times.workers) most = std::max(most, use.in_flight);
  ParallelProgram in_turn = plan.program;
  in_turn.loop_order = {};
  return wrapped_line(
      "pipeline",
      fmt::format("micro-batches overlap, up to {} in flight on a worker; without overlap the step takes {} "
                  "and {} of memory",
                  most, format_time(worker_timeline(in_turn).end), format_bytes(memory_profile(in_turn).peak)));
}

}  // namespace

std::string placed_lines(const Plan& plan) {
  std::vector<std::vector<std::string>> blocks(static_cast<std::size_t>(plan.program.workers));
  for (const OperatorId id : plan.graph->operators().ids()) {
    const GraphOperator& op = plan.graph->operators()[id];
    if (op.pass != Pass::kForward) continue;
    std::vector<std::string>& list = blocks[static_cast<std::size_t>(op.worker)];
    const std::string name = top_block(op.name);
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  }
  std::string text;
  for (std::size_t w = 0; w < std::min(blocks.size(), kMostWorkers); ++w) {
    text += wrapped_line(fmt::format("worker {}", w),
                         blocks[w].empty() ? "nothing" : fmt::format("{}", fmt::join(blocks[w], ", ")));
  }
  return text + pipeline_line(plan);
}

std::string workers_table(const Plan& plan) {
  const WorkerTimeline times = worker_timeline(plan.program);
  const ColumnUnit unit = time_unit(times.end);
  const ColumnUnit bytes = bytes_unit(plan.memory.peak);
  TextTable table({WorkerAlign::kLeft, WorkerAlign::kRight, WorkerAlign::kRight, WorkerAlign::kRight,
                   WorkerAlign::kRight, WorkerAlign::kRight, WorkerAlign::kRight, WorkerAlign::kRight,
                   WorkerAlign::kRight});
  const bool overlaps = !plan.program.loop_order.turns.empty();
  const bool has_groups = plan.mesh.num_devices() > 1;
  table.add({fmt::format("workers, {}", unit.name), "operators", "compute", has_groups ? "collectives" : "", "sends",
             "waits", "busy", overlaps ? "in flight" : "", fmt::format("peak {}", bytes.name)});
  const auto shown = std::min(times.workers.size(), kMostWorkers);
  for (std::size_t w = 0; w < shown; ++w) {
    const WorkerUse& use = times.workers[w];
    const double share = times.end == 0 ? 0 : static_cast<double>(use.busy()) / static_cast<double>(times.end);
    table.add({fmt::format("{}", w), fmt::format("{}", use.operators), unit.format(use.computation),
               has_groups ? unit.format(use.collectives) : "", unit.format(use.sending + use.receiving),
               unit.format(times.end - use.busy()), fmt::format("{:.0f} %", 100 * share),
               overlaps ? fmt::format("{}", use.in_flight) : "", bytes.format(plan.memory.worker_peaks[w])});
  }
  std::string text = table.to_string(2);
  if (times.workers.size() > shown) text += fmt::format("  {} more workers\n", times.workers.size() - shown);
  return text;
}

}  // namespace shardplan
