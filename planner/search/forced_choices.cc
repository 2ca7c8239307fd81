#include "planner/search/forced_choices.h"

#include <algorithm>
#include <memory>

#include "base/side_by_side.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// A copy of the problem in which one node's strategies can be forbidden without touching other nodes.
class ForcedProblem {
 public:
  ForcedProblem(const StrategyProblem& problem, NodeId node) : problem_(problem), limits_(problem.memory_limits) {
    StrategyTableId& table = problem_.nodes[node].strategies;
    all_ = problem_.strategy_tables[table];
    table = problem_.strategy_tables.push_back(all_);
    table_ = table;
  }

  std::optional<Choice> best(std::size_t strategy, const Search& search, const LevelOptions& options) {
    StrategyTable& table = problem_.strategy_tables[table_];
    table = all_;
    for (std::size_t other = 0; other < table.costs.size(); ++other) {
      if (other != strategy) table.costs[other].communication = kForbidden;
    }
    // The optimum without memory limits usually fits, and is found in a fraction of the time. For the least memory
    // this does not apply.
    if (options.level != Level::kMemory) {
      problem_.memory_limits.assign(limits_.size(), kUnlimitedBytes);
      LevelResult found = search_level(problem_, search, options);
      problem_.memory_limits = limits_;
      if (found.choice && evaluate(problem_, *found.choice).worst_excess <= 0) return std::move(found.choice);
    }
    return search_level(problem_, search, options).choice;
  }

 private:
  StrategyProblem problem_;
  const std::vector<Bytes> limits_;
  StrategyTable all_;
  StrategyTableId table_;
};

}  // namespace

std::vector<std::optional<Choice>> forced_choices(const StrategyProblem& problem, NodeId node,
                                                  const std::vector<std::optional<Choice>>& starts,
                                                  const LevelOptions& options) {
  const std::size_t count = starts.size();
  std::vector<std::optional<Choice>> results(count);
  const std::unique_ptr<Search> search = make_search(kDefaultSearch);
  const std::size_t threads = num_processors(std::max<std::size_t>(count, 1));
  std::vector<std::optional<ForcedProblem>> of_threads(threads);
  side_by_side(threads, count, [&](std::size_t thread, std::size_t i) {
    if (options.limits.stop.stop_requested()) return;
    if (!of_threads[thread]) of_threads[thread].emplace(problem, node);
    LevelOptions own = options;
    own.start = starts[i];
    results[i] = of_threads[thread]->best(i, *search, own);
  });
  return results;
}

}  // namespace shardplan
