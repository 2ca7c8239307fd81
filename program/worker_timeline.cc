#include "program/worker_timeline.h"

#include <algorithm>

#include "program/instruction_facts.h"

namespace shardplan {
namespace {

/// Runs of the loop that are simulated at most; those beyond take what the last one took.
constexpr std::int64_t kMostRunsOfLoop = 256;

void count(const ParallelProgram& program, const Instruction& instruction, std::vector<WorkerUse>& workers) {
  WorkerUse& use = workers[static_cast<std::size_t>(worker_of(program, instruction))];
  const Picoseconds time = instruction.time_of_step();
  if (instruction.kind == InstructionKind::kSend) {
    WorkerUse& receiver = workers[static_cast<std::size_t>(result_worker(program, instruction))];
    use.sending += time;
    ++use.sends;
    use.sent += instruction.runs * group_bytes(program, instruction);
    receiver.receiving += time;
    ++receiver.receives;
  } else if (is_computation(instruction)) {
    use.computation += time;
    if (instruction.kind == InstructionKind::kOperator && !instruction.is_phase) ++use.operators;
  } else {
    use.collectives += time;
  }
}

}  // namespace

const WorkerUse& WorkerTimeline::busiest() const {
  return *std::max_element(workers.begin(), workers.end(),
                           [](const WorkerUse& a, const WorkerUse& b) { return a.busy() < b.busy(); });
}

WorkerTimeline worker_timeline(const ParallelProgram& program) {
  WorkerTimeline result;
  result.workers.resize(static_cast<std::size_t>(program.workers));
  for (const Instruction& instruction : program.instructions) count(program, instruction, result.workers);

  // Inputs need no watching: what made them stands earlier in the same worker's list.
  std::vector<Picoseconds> free_at(static_cast<std::size_t>(program.workers), 0);
  result.spans.resize(program.instructions.size());
  std::vector<char> has_run(program.instructions.size(), 0);
  const auto run = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Instruction& instruction = program.instructions[i];
      Picoseconds& from = free_at[static_cast<std::size_t>(worker_of(program, instruction))];
      Picoseconds& to = free_at[static_cast<std::size_t>(result_worker(program, instruction))];
      const Picoseconds start = std::max(from, to);
      from = to = start + instruction.time;
      if (!has_run[i]) result.spans[i] = {start, start + instruction.time};
      has_run[i] = 1;
    }
  };
  const std::size_t loop = program.num_in_micro_batch();
  const std::int64_t runs = loop == 0 ? 0 : program.micro_batches;
  std::vector<Picoseconds> before;
  for (std::int64_t i = 0; i < std::min(runs, kMostRunsOfLoop); ++i) {
    before = free_at;
    run(0, loop);
  }
  for (std::size_t w = 0; runs > kMostRunsOfLoop && w < free_at.size(); ++w) {
    free_at[w] += (runs - kMostRunsOfLoop) * (free_at[w] - before[w]);
  }
  run(loop, program.instructions.size());
  result.end = *std::max_element(free_at.begin(), free_at.end());
  return result;
}

}  // namespace shardplan
