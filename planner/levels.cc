#include "planner/levels.h"

#include <algorithm>
#include <utility>

#include "base/integer.h"

namespace shardplan {
namespace {

/// Communication counts this often as much as computation where it comes first. A picosecond of it is worth 65 ns of
/// computation, and the weighted sums still fit in 64 bits for plans of two minutes a step.
constexpr std::int64_t kFirst = 1 << 16;

SearchOptions search_options(const LevelOptions& options, const Objective& objective,
                             const std::optional<Choice>& start) {
  SearchOptions result;
  result.objective = objective;
  result.seed = options.seed;
  result.threads = options.threads;
  result.start = start;
  result.limits = options.limits;
  return result;
}

void append(std::vector<StageStatistics>& all, const std::vector<StageStatistics>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

LevelResult of(PlanResult found) {
  LevelResult result;
  result.status = found.status;
  result.choice = std::move(found.choice);
  result.bound = found.lower_bound;
  result.statistics = std::move(found.statistics);
  return result;
}

/// The most that computation can come to.
Picoseconds most_computation(const StrategyProblem& problem) {
  std::vector<Picoseconds> of_table;
  for (const StrategyTable& table : problem.strategy_tables) {
    Picoseconds most = 0;
    for (const Cost& cost : table.costs) most = std::max(most, cost.computation);
    of_table.push_back(most);
  }
  Picoseconds sum = 0;
  for (const ProblemNode& node : problem.nodes) {
    sum = checked_add(sum, of_table[node.strategies.value()]).value_or(INT64_MAX);
  }
  return sum;
}

/// A bound is worth another search if it is this much below the cost, though the weighted sum is known more exactly; or
/// if the problem is so small, in entries of edges, that the proof takes a moment.
constexpr double kLooseBound = 1e-3;
constexpr std::size_t kSmallProblem = 4'000'000;

bool is_small(const StrategyProblem& problem) {
  std::size_t entries = 0;
  for (const ProblemEdge& edge : problem.edges) entries += problem.matrices[edge.matrix].costs.size();
  return entries <= kSmallProblem;
}

/// One search for the weighted sum. Its bound less all that computation could come to is a bound on communication;
/// where that says little, because communication is short, a second search is for communication alone.
LevelResult search_ratio(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  const Objective both{1, kFirst};
  const auto communication = [&](const Choice& choice) { return evaluate(problem, choice).cost.communication; };
  const PlanResult weighted = search.search(problem, search_options(options, both, options.start));
  LevelResult result = of(weighted);
  if (!result.choice) return result;
  result.bound = std::max<std::int64_t>(0, weighted.lower_bound - most_computation(problem)) / kFirst;
  Picoseconds found = communication(*result.choice);
  const auto gap = [](std::int64_t cost, std::int64_t bound) {
    return cost > bound ? static_cast<double>(cost - bound) / static_cast<double>(cost) : 0.0;
  };
  const bool is_loose = gap(found, result.bound) > kLooseBound + 2 * gap(weighted.cost, weighted.lower_bound);
  if (is_loose || (found > result.bound && is_small(problem))) {
    PlanResult least = search.search(problem, search_options(options, {0, 1}, result.choice));
    append(result.statistics, least.statistics);
    result.bound = std::max(result.bound, least.lower_bound);
    if (least.choice && communication(*least.choice) < found) {
      PlanResult again = search.search(problem, search_options(options, both, least.choice));
      append(result.statistics, again.statistics);
      if (again.choice && again.cost < weighted.cost) result.choice = std::move(again.choice);
      found = communication(*result.choice);
    }
  }
  result.status = found > result.bound ? PlanStatus::kFeasible : PlanStatus::kOptimal;
  return result;
}

/// What every choice holds at some time: the sum of each node's least use, at its worst time.
Bytes least_imaginable(const StrategyProblem& problem) {
  std::vector<Bytes> change(problem.memory_limits.size() + 1, 0);
  for (const ProblemNode& node : problem.nodes) {
    for (const MemoryUse& use : node.memory) {
      if (use.begin >= use.end) continue;
      const std::vector<Bytes>& bytes = problem.usage_tables[use.usage].bytes;
      const Bytes least = *std::min_element(bytes.begin(), bytes.end());
      change[use.begin] += least;
      change[use.end] -= least;
    }
  }
  Bytes now = 0, worst = 0;
  for (const Bytes step : change) worst = std::max(worst, now += step);
  return worst;
}

/// The bracket is closed when its ends are this near to each other.
constexpr std::int64_t kBracketPpm = 2'000;
constexpr int kMaxProbes = 16;

/// The least limit for which there is a choice: between what is proven too little and what was found to do. A probe
/// asks only for feasibility (all costs weigh nothing), so it ends with the first choice or the proof that there is
/// none.
LevelResult search_least_peak(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  const Objective nothing{0, 0};
  StrategyProblem probe = problem;
  const auto limit = [&](Bytes most) {
    for (std::size_t time = 0; time < probe.memory_limits.size(); ++time) {
      probe.memory_limits[time] = std::min(problem.memory_limits[time], most);
    }
  };
  LevelResult result;
  Bytes too_little = least_imaginable(problem) - 1;  // proven
  Bytes hopeless = too_little;                       // nothing was found here, proven or not
  Bytes found = 0;
  const auto ask = [&](Bytes most) {
    limit(most);
    PlanResult answer =
        search.search(probe, search_options(options, nothing, result.choice ? result.choice : options.start));
    append(result.statistics, answer.statistics);
    if (answer.choice) {
      found = evaluate(problem, *answer.choice).peak_bytes;
      result.choice = std::move(answer.choice);
      return true;
    }
    if (answer.status == PlanStatus::kInfeasible) too_little = std::max(too_little, most);
    hopeless = std::max(hopeless, most);
    return false;
  };
  if (!ask(too_little + 1) && !ask(kUnlimitedBytes)) {
    result.status = too_little >= kUnlimitedBytes ? PlanStatus::kInfeasible : PlanStatus::kNoPlanFound;
    return result;
  }
  for (int i = 0; i < kMaxProbes && found - hopeless > 1 + multiply_divide(found, kBracketPpm, 1'000'000); ++i) {
    if (options.limits.stop.stop_requested()) break;
    ask(hopeless + (found - hopeless) / 2);
  }
  result.bound = too_little + 1;
  result.status = found <= result.bound ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  return result;
}

/// The least peak, then the fastest plan that holds not much more.
LevelResult search_memory(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  LevelResult result = search_least_peak(problem, search, options);
  if (!result.choice) return result;
  StrategyProblem within = problem;
  const Bytes peak = evaluate(problem, *result.choice).peak_bytes;
  const Bytes most = peak + multiply_divide(peak, options.memory_slack_ppm, 1'000'000);
  for (Bytes& limit : within.memory_limits) limit = std::min(limit, most);
  PlanResult second = search.search(within, search_options(options, {1, 1}, result.choice));
  append(result.statistics, second.statistics);
  if (second.choice) result.choice = std::move(second.choice);
  return result;
}

}  // namespace

LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  if (options.level == 0) return search_ratio(problem, search, options);
  if (options.level == 1) return search_memory(problem, search, options);
  return of(search.search(problem, search_options(options, {1, 1}, options.start)));
}

}  // namespace shardplan
