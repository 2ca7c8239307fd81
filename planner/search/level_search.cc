#include "planner/search/level_search.h"

#include <algorithm>
#include <utility>

#include "base/integer.h"
#include "solver/limits.h"
#include "solver/minimum_peak.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// The weight of communication relative to computation where it comes first: a picosecond of it is worth 65 ns of
/// computation, and the weighted sums still fit in 64 bits for plans of two minutes per step.
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

constexpr double kLeastForLater = 1e-3;  // 0 would be without limit

/// The share of a time limit reserved for the searches after the first one.
SearchOptions later_options(const LevelOptions& options, const Objective& objective, const std::optional<Choice>& start,
                            const Deadline& since_begin) {
  SearchOptions result = search_options(options, objective, start);
  if (options.limits.seconds > 0) {
    result.limits.seconds = std::max(kLeastForLater, options.limits.seconds - since_begin.elapsed());
  }
  return result;
}

void append(std::vector<StageStatistics>& all, const std::vector<StageStatistics>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

LevelResult of(PlanResult found, Level level) {
  LevelResult result;
  result.status = found.status;
  result.choice = std::move(found.choice);
  result.bound = {level, found.lower_bound};
  result.statistics = std::move(found.statistics);
  return result;
}

/// An upper bound on the computation.
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

/// A bound is worth another search if it is this much below the cost, although the weighted sum is known more
/// exactly; or if the problem is so small, in entries of edges, that the proof takes only a moment.
constexpr double kLooseBound = 1e-3;
constexpr std::size_t kSmallProblem = 4'000'000;

bool is_small(const StrategyProblem& problem) {
  std::size_t entries = 0;
  for (const ProblemEdge& edge : problem.edges) entries += problem.matrices[edge.matrix].costs.size();
  return entries <= kSmallProblem;
}

/// If the bound on the weighted sum is this much tighter than required, the bound on communication derived from it
/// (by subtracting the largest computation) is good enough.
constexpr double kShareOfLooseGap = 7.0 / 8;
/// A gap this much above the one that is required is not worth a second search as long as the first.
constexpr double kNearlyRequired = 9.0 / 8;

/// One search for the weighted sum. Its bound minus the largest computation is a bound on communication. If that is
/// weak, because communication is short, a second search minimises communication only; so it does for a small
/// problem, unless the first search took long and its bound is nearly as tight as the second's would have to be.
LevelResult search_ratio(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  const Deadline since_begin(0, {});
  const Objective both = search_objective(Level::kRatio);
  const auto communication = [&](const Choice& choice) { return evaluate(problem, choice).cost.communication; };
  SearchOptions first = search_options(options, both, options.start);
  first.limits.loose_gap *= kShareOfLooseGap;
  const PlanResult weighted = search.search(problem, first);
  LevelResult result = of(weighted, Level::kRatio);
  Picoseconds& bound = result.bound.amount;
  bound = std::max<std::int64_t>(0, weighted.lower_bound - most_computation(problem)) / kFirst;
  if (!result.choice || !options.wants_bound) return result;
  if (options.first_answer) options.first_answer(*result.choice);
  Picoseconds found = communication(*result.choice);
  const auto relative_gap = [](std::int64_t cost, std::int64_t least) {
    return cost > least ? static_cast<double>(cost - least) / static_cast<double>(cost) : 0.0;
  };
  const double gap = relative_gap(found, bound), gap_of_sum = relative_gap(weighted.cost, weighted.lower_bound);
  const bool is_loose = gap > kLooseBound + 2 * gap_of_sum;
  const bool is_near =
      static_cast<double>(found - bound) <= kNearlyRequired * options.limits.loose_gap * static_cast<double>(bound);
  const bool will_do = is_near && gap_of_sum > options.limits.early_gap;
  if (is_loose || (found > bound && is_small(problem) && !will_do)) {
    // This search is for the bound, which nothing else would find.
    SearchOptions to_the_end = later_options(options, {0, 1}, result.choice, since_begin);
    to_the_end.limits.give_up_work = 0;
    PlanResult least = search.search(problem, to_the_end);
    append(result.statistics, least.statistics);
    bound = std::max(bound, least.lower_bound);
    if (least.choice && communication(*least.choice) < found) {
      SearchOptions from_least = later_options(options, both, least.choice, since_begin);
      from_least.limits.passes = from_least.limits.exact_work = 0;  // for its choice only
      PlanResult again = search.search(problem, from_least);
      append(result.statistics, again.statistics);
      if (again.choice && again.cost < weighted.cost) result.choice = std::move(again.choice);
      found = communication(*result.choice);
    }
  }
  result.status = found > bound ? PlanStatus::kFeasible : PlanStatus::kOptimal;
  return result;
}

/// The accepted gap between the ends of the bracket of the least peak.
constexpr std::int64_t kBracketPpm = 2'000;

MinimumPeak least_peak(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  return minimum_peak(problem, search, search_options(options, {0, 0}, options.start), kBracketPpm);
}

LevelValue memory_bound(const MinimumPeak& least) { return {Level::kMemory, least.infeasible + 1}; }

/// The least peak, then the fastest plan that takes not much more.
LevelResult search_memory(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  const Deadline since_begin(0, {});
  MinimumPeak least = least_peak(problem, search, options);
  LevelResult result;
  result.status = least.status;
  result.choice = std::move(least.choice);
  result.bound = memory_bound(least);
  result.statistics = std::move(least.statistics);
  if (!result.choice) return result;
  StrategyProblem within = problem;
  const Bytes peak = least.feasible;
  const Bytes most = peak + multiply_divide(peak, options.memory_slack_ppm, 1'000'000);
  for (Bytes& limit : within.memory_limits) limit = std::min(limit, most);
  PlanResult second = search.search(within, later_options(options, {1, 1}, result.choice, since_begin));
  append(result.statistics, second.statistics);
  if (second.choice) result.choice = std::move(second.choice);
  return result;
}

}  // namespace

LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  switch (options.level) {
    case Level::kRatio:
      return search_ratio(problem, search, options);
    case Level::kMemory:
      return search_memory(problem, search, options);
    case Level::kSpeed:
      break;
  }
  const Objective objective = search_objective(options.level);
  return of(search.search(problem, search_options(options, objective, options.start)), Level::kSpeed);
}

Objective search_objective(Level level) { return level == Level::kRatio ? Objective{1, kFirst} : Objective{1, 1}; }

std::pair<std::int64_t, std::int64_t> value_at(Level level, const Evaluation& evaluation) {
  const auto [computation, communication] = evaluation.cost;
  if (level == Level::kRatio) return {communication, computation};
  return {level == Level::kMemory ? evaluation.peak_bytes : 0, computation + communication};
}

LevelValue level_bound(const StrategyProblem& problem, const LevelOptions& options) {
  const std::unique_ptr<Search> search = make_search(kDefaultSearch);
  if (options.level == Level::kMemory) return memory_bound(least_peak(problem, *search, options));
  const Objective objective = options.level == Level::kRatio ? Objective{0, 1} : Objective{1, 1};
  return {options.level, search->search(problem, search_options(options, objective, options.start)).lower_bound};
}

}  // namespace shardplan
