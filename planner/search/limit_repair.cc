#include "planner/search/limit_repair.h"

#include <algorithm>
#include <utility>

namespace shardplan {
namespace {

/// The schedule time of every instruction: that of the operator that it belongs to or comes before.
std::vector<std::size_t> times_of(const ParallelProgram& program, std::size_t num_operators) {
  std::vector<std::size_t> times(program.instructions.size());
  std::size_t next = num_operators;
  for (std::size_t i = program.instructions.size(); i-- > 0;) {
    if (program.instructions[i].op) next = program.instructions[i].op->value();
    times[i] = next;
  }
  return times;
}

/// What the choice holds at each time, as the search sees it.
std::vector<Bytes> bytes_seen(const StrategyProblem& problem, const Choice& choice) {
  std::vector<Bytes> bytes(problem.memory_limits.size() + 1, 0);  // first differences, then sums
  for (const NodeId id : problem.nodes.ids()) {
    for (const MemoryUse& use : problem.nodes[id].memory) {
      if (use.begin >= use.end) continue;
      bytes[use.begin] += problem.usage_tables[use.usage].bytes[choice.strategy[id].value()];
      bytes[use.end] -= problem.usage_tables[use.usage].bytes[choice.strategy[id].value()];
    }
  }
  for (std::size_t time = 1; time < bytes.size(); ++time) bytes[time] += bytes[time - 1];
  bytes.pop_back();
  return bytes;
}

}  // namespace

std::vector<Bytes> lowered_limits(const StrategyProblem& problem, const ProblemTimes& times, const Choice& choice,
                                  const ParallelProgram& program, const MemoryProfile& memory, Bytes most) {
  const std::size_t num_times = times.empty() ? problem.memory_limits.size() : times.size();
  const std::vector<std::size_t> time_of = times_of(program, num_times - 1);
  std::vector<Bytes> limits = problem.memory_limits;
  std::vector<Bytes> excess(limits.size(), 0);
  for (std::size_t i = 0; i < time_of.size(); ++i) {
    const std::size_t time = time_of[i];
    const auto [before, after] =
        times.empty() ? std::pair(time, time) : std::pair<std::size_t, std::size_t>(times[time]);
    excess[before] = std::max(excess[before], memory.bytes[i] - most);
    excess[after] = std::max(excess[after], memory.bytes[i] - most);
  }
  const std::vector<Bytes> seen = bytes_seen(problem, choice);
  for (std::size_t time = 0; time < limits.size(); ++time) {
    if (excess[time] <= 0) continue;
    limits[time] = std::max<Bytes>(0, std::min(limits[time], seen[time]) - excess[time]);
  }
  return limits;
}

}  // namespace shardplan
