#include "solver/searches/search_list.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(SearchListTest, EveryEntryIsWholeAndNamedOnce) {
  std::set<std::string_view> names, modes;
  for (const SearchEntry& entry : search_list()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(names.insert(entry.name).second);
    EXPECT_TRUE(modes.insert(entry.search_mode).second);
    EXPECT_FALSE(entry.description.empty());
    EXPECT_NE(entry.make(), nullptr);
    EXPECT_EQ(find_search(entry.name), &entry);
  }
  EXPECT_EQ(search_list()[0].name, kDefaultSearch);
  EXPECT_EQ(search_names().size(), names.size());
}

TEST(SearchListTest, AnUnknownNameIsNone) {
  EXPECT_EQ(find_search("simplex"), nullptr);
  EXPECT_EQ(make_search(""), nullptr);
}

TEST(SearchListTest, WhoGivesABoundComesNearToTheCost) {
  // A chain, which every search that bounds decides.
  const StrategyProblem problem =
      layered_problem({.layers = 2, .width = 8, .strategies = 6, .training = false, .limit_percent = 200});
  for (const SearchEntry& entry : search_list()) {
    SCOPED_TRACE(entry.name);
    SearchOptions options;
    options.limits.work = 50'000'000;
    const PlanResult result = entry.make()->search(problem, options);
    ASSERT_TRUE(result.choice);
    if (entry.gives_bound) {
      EXPECT_EQ(result.lower_bound, result.cost);
    }
  }
}

}  // namespace
}  // namespace shardplan
