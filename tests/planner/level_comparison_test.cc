// Levels do not contradict each other: each knows the plans that the others found.
#include "planner/level_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <string>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

ModelPlanner planner_of(const std::string& name, std::uint64_t work, std::optional<Bytes> capacity = {}) {
  const auto model = std::make_shared<const Model>(read_model("configs/" + name + ".yaml"));
  PlanOptions options;
  options.work_limit = work;
  options.capacity = capacity;
  return ModelPlanner(model, job_cluster(*model, {}).cluster, options);
}

Plan plan_of(Level level, Picoseconds computation, Picoseconds communication, Bytes peak, Picoseconds repeated = 0) {
  Plan plan;
  plan.options.level = level;
  plan.strategies.push_back({});
  plan.usable = 1'000'000;
  plan.time = {computation, communication, communication, repeated};
  plan.memory.peak = plan.peak_in_sequence = peak;
  return plan;
}

TEST(LevelComparisonTest, EachLevelJudgesInItsOwnQuantity) {
  const auto is_better_at = [](Level level, const Plan& plan, const Plan& than) {
    Plan judged = than;
    judged.options.level = level;
    return is_better(plan, judged);
  };
  const Plan plan = plan_of(Level::kRatio, 50, 50, 10'000);
  const Plan quiet = plan_of(Level::kRatio, 90, 20, 10'300);
  EXPECT_TRUE(is_better_at(Level::kRatio, quiet, plan));
  EXPECT_FALSE(is_better_at(Level::kSpeed, quiet, plan));
  EXPECT_TRUE(is_better_at(Level::kSpeed, plan, quiet));
  EXPECT_TRUE(is_better_at(Level::kMemory, plan, quiet));
  EXPECT_FALSE(is_better_at(Level::kMemory, plan_of(Level::kRatio, 90, 20, 9'980), plan));  // within the slack
  EXPECT_TRUE(is_better_at(Level::kMemory, plan_of(Level::kRatio, 90, 20, 9'950), plan));
  EXPECT_FALSE(is_better_at(Level::kRatio, plan_of(Level::kRatio, 50, 20, 10'000, 5), plan));  // with repeated work
  EXPECT_FALSE(is_better_at(Level::kSpeed, plan_of(Level::kRatio, 1, 1, 2'000'000), plan));    // does not fit
  EXPECT_TRUE(is_better_at(Level::kSpeed, plan, plan_of(Level::kRatio, 1, 1, 2'000'000)));
  EXPECT_FALSE(is_better_at(Level::kSpeed, Plan(), plan));
}

TEST(LevelComparisonTest, InterruptedPlansSaySo) {
  std::stop_source stopped;
  stopped.request_stop();
  std::size_t count = 0;
  for (const Plan& plan : plans_of_levels(planner_of("gpt2-small", 0), kDefaultSearch, stopped.get_token())) {
    count += plan.ended_early ? 1 : 0;
    EXPECT_EQ(plan.ended_early, is_found(plan.status) && open_gap(plan).value_or(1) > 0);
    EXPECT_EQ(plan.ended_early, std::ranges::count(plan.notices, "interrupted: this is the best plan so far") == 1);
  }
  EXPECT_GT(count, 0u);
}

TEST(LevelComparisonTest, NoLevelIsBeatenInItsOwnObjective) {
  for (const char* name : {"mlp", "lenet", "basic-blocks", "basic-blocks-net2", "semi-auto-matmul"}) {
    // Hardly any work, so that a level by itself finds poor plans, and enough work.
    for (const std::uint64_t work : {200'000u, 300'000'000u}) {
      SCOPED_TRACE(std::string(name) + " with work " + std::to_string(work));
      const std::vector<Plan> plans = plans_of_levels(planner_of(name, work), kDefaultSearch);
      ASSERT_EQ(plans.size(), 4u);
      for (const Level level : kLevels) {
        const Plan& own = plans[static_cast<std::size_t>(number_of(level))];
        ASSERT_EQ(own.options.level, level);
        EXPECT_LE(own.bound.amount, own.cost.amount);
        for (const Plan& other : plans) {
          // Level 0 has fewer candidates: a plan without repeated work is among them, others need not be.
          if (level == Level::kRatio && other.time.repeated > 0) continue;
          EXPECT_FALSE(is_better(other, own))
              << to_string(level) << " is beaten by " << to_string(other.options.level) << ", " << other.options.search;
        }
      }
    }
  }
}

TEST(LevelComparisonTest, AKnownPlanIsAStart) {
  const ModelPlanner planner = planner_of("mlp", 100'000'000);
  std::vector<Plan> best = {planner.plan(Level::kSpeed, kDefaultSearch)};
  // Propagation alone ends at another plan; started from the best plan it ends there.
  EXPECT_LE(planner.plan(Level::kSpeed, "propagation", {}, {}, best).time.additive(), best[0].time.additive());
}

}  // namespace
}  // namespace shardplan
