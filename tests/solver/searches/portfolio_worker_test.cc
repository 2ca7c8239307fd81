#include "solver/searches/portfolio_worker.h"

#include <gtest/gtest.h>

#include "solver/searches/portfolio_search.h"
#include "tests/support/cores.h"

namespace shardplan {
namespace {

class PortfolioWorkerTest : public testing::Test {
 protected:
  /// What an engine came to is feasible and costs what it says; its bound holds. True if it found something.
  static bool expect_true(const CoreSketch& sketch, PortfolioWorker& worker, Engine by) {
    const std::optional<CoreChoice> best = brute_force(sketch);
    const FoundChoice found = worker.take_found();
    EXPECT_FALSE(worker.take_found().choice);
    if (best) {
      EXPECT_LE(worker.dual().best_bound(), sketch.cost(*best)) << describe(sketch);
    }
    if (!found.choice) return false;
    EXPECT_TRUE(sketch.is_feasible(*found.choice)) << describe(sketch);
    EXPECT_EQ(sketch.cost(*found.choice), found.cost);
    EXPECT_EQ(found.by, by);
    return true;
  }

  static PortfolioKnowledge knowledge(const CoreSketch& sketch, const CoreProblem& core) {
    PortfolioKnowledge known;
    known.prices.assign(core.limits.size(), 0);
    const CoreChoice start = fewest_bytes_choice(core);
    if (sketch.is_feasible(start)) known.best = {start, sketch.cost(start), Engine::kBound};
    known.bound = 0;
    return known;
  }

  /// Two nodes, each with a value of 5 bytes for nothing and one of none for 9: only one can have its cheap value.
  static CoreProblem one_of_two_fits() {
    CoreSketch sketch;
    sketch.costs = {{0, 9}, {0, 9}};
    sketch.segments = {{0, 0, 1, {5, 0}}, {1, 0, 1, {5, 0}}};
    sketch.limits = {5};
    return core_of(sketch);
  }

  Deadline deadline_{0, {}};
};

TEST_F(PortfolioWorkerTest, EveryEngineFindsFeasibleChoices) {
  int num_found[7] = {};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 7, .edge_percent = 60, .limit_percent = 40});
    const CoreProblem core = core_of(sketch);
    const PortfolioKnowledge known = knowledge(sketch, core);
    constexpr std::uint64_t kWork = 100'000;
    PortfolioWorker worker(core, deadline_, static_cast<int>(seed % 3));
    worker.improve({{random_choice(sketch, random)}}, kWork);
    num_found[0] += expect_true(sketch, worker, Engine::kBound);
    worker.run_bound(known, kWork);
    num_found[0] += expect_true(sketch, worker, Engine::kBound);
    worker.run_fresh_bound(known, kWork);
    num_found[0] += expect_true(sketch, worker, Engine::kBound);
    worker.run_dive(known, random, kWork);
    num_found[1] += expect_true(sketch, worker, Engine::kDive);
    worker.run_neighbourhood(Engine::kTrees, known, random, kWork);
    num_found[2] += expect_true(sketch, worker, Engine::kTrees);
    worker.run_neighbourhood(Engine::kBlocks, known, random, kWork);
    num_found[3] += expect_true(sketch, worker, Engine::kBlocks);
    if (known.best.choice) {
      worker.run_part(known, {}, search_with_portfolio, random, kWork);
      num_found[6] += expect_true(sketch, worker, Engine::kPart);
    }
    DualBound root(core);
    root.pass();
    BranchAndBound exact(core, root);
    SubproblemsAhead ahead(exact, core, deadline_, 0);
    const auto dive_into_open_ones = [&] {
      for (const BranchAndBound::Subproblem* subproblem : exact.most_promising(2)) {
        worker.run_dive(exact, *subproblem, known, random, kWork);
        num_found[5] += expect_true(sketch, worker, Engine::kDive);
      }
    };
    dive_into_open_ones();
    worker.run_exact(ahead, known, exact.take(1));
    num_found[4] += expect_true(sketch, worker, Engine::kExact);
    std::vector<BranchAndBound::Outcome> outcomes = worker.take_outcomes();
    ASSERT_EQ(outcomes.size(), 1u);
    exact.put(std::move(outcomes[0]));
    dive_into_open_ones();
    EXPECT_GT(worker.take_used(), 0u);
    EXPECT_EQ(worker.take_used(), 0u);
  }
  for (int engine = 0; engine < 6; ++engine) EXPECT_GT(num_found[engine], 20);
  EXPECT_GT(num_found[6], 0);  // few parts of such small cores are small enough
}

TEST_F(PortfolioWorkerTest, EqualWorkAndSeedGiveEqualAnswers) {
  Random random(11);
  const CoreSketch sketch = random_core(random, {.max_nodes = 8, .edge_percent = 80});
  const CoreProblem core = core_of(sketch);
  const PortfolioKnowledge known = knowledge(sketch, core);
  const auto run = [&] {
    PortfolioWorker worker(core, deadline_, 1);
    Random own(5);
    worker.run_dive(known, own, 100'000);
    worker.run_neighbourhood(Engine::kTrees, known, own, 100'000);
    return worker.take_found().choice;
  };
  EXPECT_EQ(run(), run());
}

TEST_F(PortfolioWorkerTest, FollowsPricesThatBoundMuchBetter) {
  const CoreProblem core = one_of_two_fits();
  PortfolioWorker worker(core, deadline_, 0);
  PortfolioKnowledge known;
  known.best = {CoreChoice{0, 1}, 9, Engine::kBound};
  known.prices = {1.8};
  known.bound = 9;  // what branch and bound says is no bound of these prices
  known.priced_bound = 8;
  worker.follow_prices(known);
  EXPECT_EQ(worker.dual().prices(), known.prices);
  EXPECT_EQ(worker.dual().best_bound(), 8);
}

TEST_F(PortfolioWorkerTest, PricesMoveBeforeAnythingIsKnown) {
  const CoreProblem core = one_of_two_fits();
  PortfolioWorker worker(core, deadline_, 0);
  PortfolioKnowledge nothing;
  nothing.prices = {0};
  worker.run_bound(nothing, 100'000);
  EXPECT_GT(worker.dual().best_prices()[0], 0);
  EXPECT_GT(worker.dual().best_bound(), 0);
}

TEST_F(PortfolioWorkerTest, TheTargetIsTheBestCostOrALittleAboveTheBound) {
  PortfolioKnowledge known;
  EXPECT_EQ(known.target(), kInfinity);  // neither is known
  known.bound = 100;
  EXPECT_EQ(known.target(), 100 + 5 + 1);
  known.known_cost = 150;
  EXPECT_EQ(known.target(), 150);
  known.known_cost = kInfinity;
  known.best = {CoreChoice{}, 300, Engine::kDive};
  EXPECT_EQ(known.target(), 300);
  known.best.cost = 1e9;
  EXPECT_EQ(known.target(), 20 * 100 + 1);  // a bad choice is no target
  EXPECT_FALSE(known.is_proven());
  known.best.cost = 100.5;
  EXPECT_TRUE(known.is_proven());  // costs are whole
}

}  // namespace
}  // namespace shardplan
