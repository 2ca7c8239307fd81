#include "solver/bounds/elimination.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "solver/presolve/presolve.h"
#include "tests/support/cores.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(EliminationTest, FindsWhatTryingAllChoicesFinds) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 7, .edge_percent = 70, .times = 0});
    const CoreProblem core = core_of(sketch);
    const Elimination elimination(core);
    ASSERT_TRUE(elimination.is_possible());
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, kInfiniteWork);
    const auto found = elimination.run(core.costs, meter);
    ASSERT_TRUE(found);
    const std::optional<CoreChoice> best = brute_force(sketch);
    ASSERT_EQ(found->cost < core.big_m, best.has_value()) << describe(sketch);
    if (!best) continue;
    ++num_compared;
    EXPECT_EQ(found->cost, sketch.cost(*best)) << describe(sketch);
    EXPECT_EQ(sketch.cost(found->choice), found->cost) << describe(sketch);
  }
  EXPECT_GT(num_compared, 300);
}

TEST(EliminationTest, TakesOtherCostsThanTheCores) {
  Random random(9);
  CoreSketch sketch = random_core(random, {.max_nodes = 6, .forbidden_percent = 0, .times = 0});
  const CoreProblem core = core_of(sketch);
  std::vector<double> costs;
  for (auto& list : sketch.costs) {
    for (double& cost : list) costs.push_back(cost = static_cast<double>(random.below(50)));
  }
  const Elimination elimination(core);
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, kInfiniteWork);
  EXPECT_EQ(elimination.run(costs, meter)->cost, sketch.cost(*brute_force(sketch)));
}

/// The cost of a run over the given number of equal layers, forward and backward.
struct LayersRun {
  std::size_t entries = 0;
  std::size_t steps_made = 0;
};
LayersRun run_layers(std::size_t layers) {
  const StrategyProblem problem =
      layered_problem({.layers = layers, .width = 10, .strategies = 24, .training = true, .limit_percent = 200});
  const Presolve presolve(problem, {}, Deadline(0, {}), {}, true, Presolve::Memory::kIgnored);
  const Elimination elimination(presolve.core());
  EXPECT_TRUE(elimination.is_possible());
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, kInfiniteWork);
  const auto found = elimination.run(presolve.core().costs, meter);
  EXPECT_TRUE(found);
  return {found->entries, presolve.core().num_nodes() - found->repeated_steps};
}

TEST(EliminationTest, MakesTheTablesOfEqualLayersOnce) {
  const LayersRun few = run_layers(12);
  const LayersRun many = run_layers(48);
  EXPECT_EQ(few.entries, many.entries);
  EXPECT_EQ(few.steps_made, many.steps_made);
}

TEST(EliminationTest, EndsWithoutAnAnswerWhenItsWorkIsSpent) {
  const StrategyProblem problem = layered_problem({.layers = 2, .width = 10, .strategies = 24, .training = true});
  const Presolve presolve(problem, {}, Deadline(0, {}), {}, true, Presolve::Memory::kIgnored);
  const Elimination elimination(presolve.core());
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 100);
  EXPECT_FALSE(elimination.run(presolve.core().costs, meter));
}

TEST(EliminationTest, RefusesTablesThatAreTooLarge) {
  // A clique of nine nodes with nine values each: the first table would have 9^8 entries.
  CoreSketch sketch;
  Random random(1);
  sketch.costs.assign(9, std::vector<double>(9, 0));
  for (std::uint32_t a = 0; a < 9; ++a) {
    for (std::uint32_t b = a + 1; b < 9; ++b) {
      CoreSketch::Edge edge{a, b, {}};
      for (int row = 0; row < 9; ++row) {
        std::vector<double>& entries = edge.costs.emplace_back();
        for (int column = 0; column < 9; ++column) entries.push_back(static_cast<double>(random.below(1000)));
      }
      sketch.edges.push_back(edge);
    }
  }
  const CoreProblem core = core_of(sketch);
  EXPECT_FALSE(Elimination(core).is_possible());
}

}  // namespace
}  // namespace shardplan
