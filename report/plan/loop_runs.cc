#include "report/plan/loop_runs.h"

#include <algorithm>

#include "program/instruction_facts.h"
#include "program/last_run.h"

namespace shardplan {

std::optional<OtherRuns> other_runs(const Plan& plan, const std::vector<OverlappedTimeline::Span>& spans,
                                    std::optional<int> worker) {
  const auto& instructions = plan.program.instructions;
  std::vector<bool> is_early(instructions.size(), false);
  for (const LastRunCollective& early : issued_in_last_run(plan.program)) {
    std::fill(is_early.begin() + static_cast<std::ptrdiff_t>(early.begin),
              is_early.begin() + static_cast<std::ptrdiff_t>(early.end), true);
  }
  const auto is_own = [&](const Instruction& instruction) {
    return !worker || worker_of(plan.program, instruction) == *worker ||
           result_worker(plan.program, instruction) == *worker;
  };
  std::optional<Picoseconds> first;
  Picoseconds last = plan.time.step();
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (!is_own(instructions[i])) continue;
    if (instructions[i].runs > 1) {
      first = std::max(first.value_or(0), spans[i].end);
    } else if (first && !is_early[i] && spans[i].end > spans[i].begin) {
      last = std::min(last, spans[i].begin);
    }
  }
  if (!first) return std::nullopt;
  return OtherRuns{*first, std::max(*first, last)};
}

}  // namespace shardplan
