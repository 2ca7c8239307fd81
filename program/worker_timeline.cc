#include "program/worker_timeline.h"

#include <algorithm>
#include <map>
#include <optional>

#include "program/instruction_facts.h"
#include "program/loop_order.h"

namespace shardplan {
namespace {

/// Maximal number of iterations that are simulated if they do not overlap; further ones take as long as the last one.
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

/// The largest number of iterations that each worker has begun and not finished.
void count_in_flight(const ParallelProgram& program, std::vector<WorkerUse>& workers) {
  const std::size_t loop = program.num_in_micro_batch();
  const auto both = [&](std::size_t i) {
    const Instruction& instruction = program.instructions[i];
    std::vector<std::size_t> result{static_cast<std::size_t>(worker_of(program, instruction))};
    const auto other = static_cast<std::size_t>(result_worker(program, instruction));
    if (other != result[0]) result.push_back(other);
    return result;
  };
  std::vector<std::size_t> parts(workers.size(), 0);
  for (std::size_t i = 0; i < loop; ++i) {
    for (const std::size_t w : both(i)) ++parts[w];
  }
  std::vector<std::vector<std::size_t>> done(workers.size());
  for (auto& by_run : done) by_run.resize(static_cast<std::size_t>(program.micro_batches), 0);
  std::vector<std::int64_t> now(workers.size(), 0);
  for (LoopWalk walk(program); !walk.is_done(); walk.next()) {
    for (const std::size_t w : both(walk.instruction())) {
      std::size_t& count = done[w][static_cast<std::size_t>(walk.run())];
      if (count++ == 0) workers[w].in_flight = std::max(workers[w].in_flight, ++now[w]);
      if (count == parts[w]) --now[w];
    }
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

  // Inputs need no check: their producers come earlier in the same worker's list.
  std::vector<Picoseconds> free_at(static_cast<std::size_t>(program.workers), 0);
  result.spans.resize(program.instructions.size());
  std::vector<char> has_run(program.instructions.size(), 0);
  const auto run = [&](std::size_t i) {
    const Instruction& instruction = program.instructions[i];
    Picoseconds& from = free_at[static_cast<std::size_t>(worker_of(program, instruction))];
    Picoseconds& to = free_at[static_cast<std::size_t>(result_worker(program, instruction))];
    const Picoseconds start = std::max(from, to);
    from = to = start + instruction.time;
    if (!has_run[i]) result.spans[i] = {start, start + instruction.time};
    has_run[i] = 1;
  };
  const bool overlaps = !program.loop_order.turns.empty();
  if (overlaps) count_in_flight(program, result.workers);
  std::vector<Picoseconds> before = free_at;
  LoopWalk walk(program);
  std::int64_t runs = 0;
  for (; !walk.is_done() && (overlaps || walk.run() < kMostRunsOfLoop); walk.next()) {
    if (!overlaps && walk.run() == runs) {
      before = free_at;
      ++runs;
    }
    run(walk.instruction());
  }
  for (std::size_t w = 0; !walk.is_done() && w < free_at.size(); ++w) {
    free_at[w] += (program.micro_batches - runs) * (free_at[w] - before[w]);
  }
  for (std::size_t i = program.num_in_micro_batch(); i < program.instructions.size(); ++i) run(i);
  result.end = *std::max_element(free_at.begin(), free_at.end());
  return result;
}

Picoseconds least_step(const ParallelProgram& program) {
  const std::size_t count = program.instructions.size();
  std::map<ValueId, std::size_t> maker;
  std::vector<Picoseconds> before(count, 0), behind(count, 0);  // the longest path, without the instruction itself
  for (std::size_t i = 0; i < count; ++i) {
    for (const ValueId input : program.instructions[i].inputs) {
      const auto made = maker.find(input);
      if (made == maker.end()) continue;
      before[i] = std::max(before[i], before[made->second] + program.instructions[made->second].time);
    }
    for (const ValueId output : program.instructions[i].outputs) maker.emplace(output, i);
  }
  Picoseconds least = 0;
  for (std::size_t i = count; i-- > 0;) {
    least = std::max(least, before[i] + program.instructions[i].time + behind[i]);
    for (const ValueId input : program.instructions[i].inputs) {
      const auto made = maker.find(input);
      if (made == maker.end()) continue;
      behind[made->second] = std::max(behind[made->second], behind[i] + program.instructions[i].time);
    }
  }
  struct Part {
    std::optional<Picoseconds> before, behind;
    Picoseconds busy = 0;
  };
  std::vector<Part> parts(static_cast<std::size_t>(program.workers));
  const auto add = [&](int worker, std::size_t i) {
    Part& part = parts[static_cast<std::size_t>(worker)];
    if (program.instructions[i].time == 0) return;
    part.busy += program.instructions[i].time_of_step();
    part.before = std::min(part.before.value_or(before[i]), before[i]);
    part.behind = std::min(part.behind.value_or(behind[i]), behind[i]);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const int from = worker_of(program, program.instructions[i]);
    const int to = result_worker(program, program.instructions[i]);
    add(from, i);
    if (to != from) add(to, i);
  }
  for (const Part& part : parts) {
    least = std::max(least, part.before.value_or(0) + part.busy + part.behind.value_or(0));
  }
  return least;
}

}  // namespace shardplan
