#include "planner/search/search_beside.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(SearchBesideTest, FindsWhatTheSearchFinds) {
  const auto search = make_search(kDefaultSearch);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    SearchOptions options;
    options.limits.progress = [](const SearchProgress&) { ADD_FAILURE() << "from another thread"; };
    PlanResult beside = SearchBeside(problem, *search, options).get();
    options.limits.progress = {};
    const PlanResult found = search->search(problem, options);
    EXPECT_EQ(beside.choice, found.choice);
    EXPECT_EQ(beside.lower_bound, found.lower_bound);
  }
}

/// Ends only when it is asked to.
class EndlessSearch : public Search {
 public:
  PlanResult search(const StrategyProblem&, const SearchOptions& options) const override {
    while (!options.limits.stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PlanResult result;
    result.stopped_by = Limit::kInterrupted;
    return result;
  }
};

TEST(SearchBesideTest, EndsWithItsObjectAndWithItsCallersToken) {
  const StrategyProblem problem;
  const EndlessSearch search;
  { const SearchBeside unneeded(problem, search, {}); }
  std::stop_source stop;
  SearchOptions options;
  options.limits.stop = stop.get_token();
  SearchBeside beside(problem, search, options);
  stop.request_stop();
  EXPECT_EQ(beside.get().stopped_by, Limit::kInterrupted);
}

}  // namespace
}  // namespace shardplan
