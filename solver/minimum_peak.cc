#include "solver/minimum_peak.h"

#include <algorithm>
#include <limits>

#include "base/integer.h"
#include "solver/time_profile.h"

namespace shardplan {
namespace {

/// The largest sum, over all times, of the least memory of every node: no choice has a lower peak.
Bytes least_peak(const StrategyProblem& problem) {
  std::vector<Bytes> least;
  for (const UsageTable& table : problem.usage_tables) {
    least.push_back(table.bytes.empty() ? 0 : *std::min_element(table.bytes.begin(), table.bytes.end()));
  }
  TimeProfile profile(problem.memory_limits.size());
  for (const ProblemNode& node : problem.nodes) {
    for (const MemoryUse& use : node.memory) {
      if (use.begin < use.end) profile.add(use.begin, use.end, least[use.usage.value()]);
    }
  }
  Int128 peak = 0;
  for (const Int128 bytes : profile.sums()) peak = std::max(peak, bytes);
  return static_cast<Bytes>(std::min<Int128>(peak, std::numeric_limits<Bytes>::max()));
}

}  // namespace

MinimumPeak minimum_peak(const StrategyProblem& problem, const Search& search, const SearchOptions& options,
                         std::int64_t tolerance_ppm) {
  const Deadline deadline(options.limits.seconds, options.limits.stop);
  MinimumPeak result;
  StrategyProblem lowered = problem;
  std::optional<Limit> limit_reached;  // by a search that could not decide about its limit
  const auto attempt = [&](std::optional<Bytes> limit) {
    for (std::size_t time = 0; time < problem.memory_limits.size(); ++time) {
      lowered.memory_limits[time] = limit ? std::min(problem.memory_limits[time], *limit) : problem.memory_limits[time];
    }
    SearchOptions part = options;
    part.objective = {0, 0};
    // Bisection of a bracket this narrow takes about as many searches. (A work limit of 0 would mean no limit.)
    if (options.limits.work > 0) part.limits.work = std::max<std::uint64_t>(options.limits.work / 16, 1);
    if (options.limits.seconds > 0)
      part.limits.seconds = std::max((options.limits.seconds - deadline.elapsed()) / 4, 1e-3);
    part.limits.gap = 1e9;  // any choice will do
    part.limits.progress = nullptr;
    if (result.choice) part.start = result.choice;
    PlanResult found = search.search(lowered, part);
    result.statistics.insert(result.statistics.end(), found.statistics.begin(), found.statistics.end());
    if (found.choice) {
      result.feasible = evaluate(problem, *found.choice).peak_bytes;
      result.choice = std::move(found.choice);
      return PlanStatus::kFeasible;
    }
    limit_reached = std::max(limit_reached, found.stopped_by);
    return found.status;
  };
  result.infeasible = least_peak(problem) - 1;
  if (attempt(result.infeasible + 1) != PlanStatus::kFeasible) {
    const PlanStatus status = attempt(std::nullopt);
    if (status != PlanStatus::kFeasible) {
      result.status = status;
      if (status != PlanStatus::kInfeasible) result.stopped_by = limit_reached;
      return result;
    }
  }
  Bytes undecided = result.infeasible;  // at or above `infeasible`: nothing was found up to this limit
  const auto is_open = [&] {
    return result.feasible - undecided > 1 + multiply_divide(result.feasible, tolerance_ppm, 1'000'000);
  };
  const auto settle = [&](Bytes limit) {
    const PlanStatus status = attempt(limit);
    // Bounds proven at one limit hold at all lower ones, so the proven part of the bracket only grows from below.
    if (status == PlanStatus::kInfeasible) result.infeasible = limit;
    if (status != PlanStatus::kFeasible) undecided = std::max(undecided, limit);
  };
  while (is_open() && !deadline.is_over()) settle(undecided + (result.feasible - undecided) / 2);
  // What could not be decided at one limit often can at a lower one.
  const Bytes tolerance = multiply_divide(result.feasible, tolerance_ppm, 1'000'000);
  if (undecided - result.infeasible > 1 + tolerance && !deadline.is_over()) {
    settle(result.infeasible + (undecided - result.infeasible) / 2);
  }
  result.status = result.infeasible + 1 >= result.feasible ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  if (result.status == PlanStatus::kOptimal) return result;
  if (is_open()) {
    result.stopped_by = deadline.reached();
  } else {
    result.stopped_by = limit_reached                   ? limit_reached
                        : undecided > result.infeasible ? std::nullopt
                                                        : std::optional(Limit::kGap);
  }
  return result;
}

}  // namespace shardplan
