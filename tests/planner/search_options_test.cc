#include "planner/search/search_options.h"

#include <gtest/gtest.h>

#include <memory>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "planner/search/default_limits.h"

namespace shardplan {
namespace {

PlanOptions limited(double seconds, std::uint64_t work) {
  PlanOptions options;
  options.time_limit = seconds;
  options.work_limit = work;
  return options;
}

TEST(SearchOptionsTest, ASearchGetsTheTimeThatIsLeftLessWhatIsKept) {
  PlanOptions options = limited(10, 0);
  options.time_spent = 1;
  EXPECT_DOUBLE_EQ(search_options(options, Level::kSpeed, {}, {}, 2).limits.seconds, 7);
  EXPECT_DOUBLE_EQ(search_options(options, Level::kSpeed, {}, {}, 2, 3).limits.seconds, 4);
  EXPECT_DOUBLE_EQ(search_options(options, Level::kSpeed, {}, {}, 5, 100).limits.seconds, 1);  // a quarter of 4
  EXPECT_GT(search_options(options, Level::kSpeed, {}, {}, 20).limits.seconds, 0);             // 0 would be no limit
  EXPECT_EQ(search_options(limited(0, 0), Level::kSpeed, {}, {}, 20).limits.seconds, 0);
}

TEST(SearchOptionsTest, OfTimeOrWorkTheUsersLimitReplacesTheDefault) {
  EXPECT_EQ(search_options(limited(0, 0), Level::kSpeed, {}, {}).limits.work, kDefaultWork);
  EXPECT_EQ(search_options(limited(10, 0), Level::kSpeed, {}, {}).limits.work, 0u);
  EXPECT_EQ(search_options(limited(10, 77), Level::kSpeed, {}, {}).limits.work, 77u);
}

TEST(SearchOptionsTest, AFirstSearchLeavesTheSecondHalfOfTheTime) {
  const auto first = [](const PlanOptions& options) {
    return limits_of_first(options, search_options(options, Level::kSpeed, {}, {}).limits);
  };
  EXPECT_DOUBLE_EQ(first(limited(10, 0)).seconds, 5);
  EXPECT_EQ(first(limited(10, 0)).work, kDefaultWork);
  EXPECT_EQ(first(limited(10, 77)).work, 77u);
  EXPECT_EQ(first(limited(0, 0)).seconds, 0);  // no limit
}

// A first search that goes on until a limit leaves nothing for the second: bert-base took half as long again.
TEST(SearchOptionsTest, ATimeLimitThatIsNotReachedChangesNothing) {
  const auto model = std::make_shared<const Model>(read_model("configs/mnist-train.yaml"));
  const Cluster cluster = read_cluster("ascend-910");
  const Plan limited_plan = ModelPlanner(model, cluster, limited(1000, 0)).plan(Level::kSpeed, "auto");
  const Plan plan = ModelPlanner(model, cluster, {}).plan(Level::kSpeed, "auto");
  EXPECT_EQ(limited_plan.strategies, plan.strategies);
  EXPECT_EQ(limited_plan.versions, plan.versions);
  EXPECT_EQ(limited_plan.time.step(), plan.time.step());
}

}  // namespace
}  // namespace shardplan
