#include "solver/bounds/branch_and_bound.h"

#include <gtest/gtest.h>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(BranchAndBoundTest, ProvesTheOptimumWhateverTheBatches) {
  int num_split = 0, num_smaller = 0, num_from_prices = 0, num_infeasible = 0;
  for (std::uint64_t seed = 0; seed < 2400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(
        random, {.max_nodes = 6, .edge_percent = 80, .limit_percent = 20 + static_cast<int>(random.below(40))});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    DualBound root(core);
    for (std::uint64_t pass = random.below(5); pass > 0; --pass) root.pass();
    if (root.num_passes() == 0) root.pass();
    // With room for no states, subproblems continue from prices.
    BranchAndBound search(core, root, seed % 3 == 0 ? 0 : BranchAndBound::kMostStored);
    DualBound workspace(core);
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, 2'000'000'000);
    std::optional<CoreChoice> found;
    double cost = core.big_m;
    while (!search.is_empty() && !meter.is_spent()) {
      if (best) {
        EXPECT_LE(search.bound(), sketch.cost(*best)) << describe(sketch);
      }
      for (BranchAndBound::Subproblem& item : search.take(1 + random.below(4))) {
        num_from_prices += item.state == nullptr && !item.prices.empty();
        BranchAndBound::Outcome outcome = search.process(std::move(item), workspace, cost, meter);
        if (outcome.choice && outcome.cost < cost) {
          EXPECT_TRUE(sketch.is_feasible(*outcome.choice)) << describe(sketch);
          EXPECT_EQ(outcome.cost, sketch.cost(*outcome.choice));
          found = outcome.choice;
          cost = outcome.cost;
        }
        num_split += !outcome.parts.empty();
        num_smaller += !outcome.parts.empty() && outcome.parts[0].part != nullptr;
        search.put(std::move(outcome));
      }
    }
    ASSERT_TRUE(search.is_empty());
    num_infeasible += !best;
    ASSERT_EQ(found.has_value(), best.has_value()) << describe(sketch);
    if (best) {
      EXPECT_EQ(cost, sketch.cost(*best)) << describe(sketch);
    }
  }
  EXPECT_GT(num_split, 20);
  EXPECT_GT(num_smaller, 20);
  EXPECT_GT(num_from_prices, 20);
  EXPECT_GT(num_infeasible, 5);
}

TEST(BranchAndBoundTest, AKnownCostLeavesOnlyWhatIsBetter) {
  CoreSketch sketch;
  sketch.costs = {{4, 6, 9}};
  const CoreProblem core = core_of(sketch);
  DualBound root(core);
  root.pass();
  BranchAndBound search(core, root);
  EXPECT_FALSE(search.is_empty());
  ASSERT_EQ(search.most_promising(3).size(), 1u);
  EXPECT_EQ(search.most_promising(3)[0]->bound, search.bound());
  EXPECT_TRUE(search.most_promising(0).empty());
  search.set_best_cost(4);  // costs are whole: nothing below 4 is left
  EXPECT_TRUE(search.is_empty());
  EXPECT_EQ(search.bound(), 4);
}

TEST(BranchAndBoundTest, WhatIsCutShortKeepsTheOptimum) {
  Random random(4);
  const CoreSketch sketch = random_core(random, {.max_nodes = 6, .edge_percent = 90});
  const CoreProblem core = core_of(sketch);
  DualBound root(core);
  root.pass();
  BranchAndBound search(core, root);
  std::vector<BranchAndBound::Subproblem> batch = search.take(1);
  ASSERT_EQ(batch.size(), 1u);
  const std::optional<CoreChoice> best = brute_force(sketch);
  ASSERT_TRUE(best);
  DualBound workspace(core);
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 1);
  BranchAndBound::Outcome outcome = search.process(std::move(batch[0]), workspace, core.big_m, meter);
  // What does not fit may be gone; what is best may not.
  ASSERT_EQ(outcome.parts.size(), 1u);
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    EXPECT_TRUE(outcome.parts[0].alive[core.first_value[node] + (*best)[node]]) << describe(sketch);
  }
  EXPECT_FALSE(outcome.choice);
}

}  // namespace
}  // namespace shardplan
