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

/// Least communication proves the bound; a second search that begins there and weighs computation a little picks among
/// the plans of (nearly) that communication.
LevelResult search_ratio(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  LevelResult result = of(search.search(problem, search_options(options, {0, 1}, options.start)));
  if (!result.choice) return result;
  PlanResult second = search.search(problem, search_options(options, {1, kFirst}, result.choice));
  append(result.statistics, second.statistics);
  if (!second.choice) return result;
  const Evaluation first_cost = evaluate(problem, *result.choice);
  const Evaluation second_cost = evaluate(problem, *second.choice);
  const Objective both{1, kFirst};
  if (second_cost.feasible && second_cost.value(both) <= first_cost.value(both))
    result.choice = std::move(second.choice);
  if (evaluate(problem, *result.choice).cost.communication > result.bound) result.status = PlanStatus::kFeasible;
  return result;
}

}  // namespace

LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  if (options.level == 0) return search_ratio(problem, search, options);
  return of(search.search(problem, search_options(options, {1, 1}, options.start)));
}

}  // namespace shardplan
