#include "solver/bounds/dual_bound.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

/// What the bound is moved towards: the optimum, or a little more than nothing.
double target_of(const CoreSketch& sketch, const std::optional<CoreChoice>& best) {
  return best ? sketch.cost(*best) : 1000;
}

TEST(DualBoundTest, NoFeasibleChoiceIsBelowTheBound) {
  int num_tight = 0, num_feasible = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.limit_percent = 20 + static_cast<int>(random.below(60))});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    ++num_feasible;
    DualBound dual(core);
    const DualBound::Steps steps{
        random.below(2) == 0 ? DualBound::Subgradient::kDecoded : DualBound::Subgradient::kMinMarginals, 0.8,
        random.below(2) == 0 ? 0 : 7};
    double before = -kInfinity;
    for (int pass = 0; pass < 60; ++pass) {
      ASSERT_LE(dual.iterate(target_of(sketch, best), steps), sketch.cost(*best)) << describe(sketch);
      ASSERT_LE(dual.certain_bound(), sketch.cost(*best)) << describe(sketch);
      ASSERT_GE(dual.best_bound(), before);
      before = dual.best_bound();
    }
    num_tight += dual.best_bound() > sketch.cost(*best) - 1;
  }
  EXPECT_GT(num_tight, num_feasible / 2);
}

TEST(DualBoundTest, OnTreesWithoutLimitsItIsTheOptimumAndDecodesIt) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch =
        random_core(random, {.max_nodes = 7, .forbidden_percent = 0, .times = 0, .is_tree = true});
    const CoreProblem core = core_of(sketch);
    DualBound dual(core);
    for (int pass = 0; pass < 8; ++pass) dual.pass();
    const double optimum = sketch.cost(*brute_force(sketch));
    EXPECT_NEAR(dual.best_bound(), optimum, 1e-6) << describe(sketch);
    EXPECT_LE(dual.best_bound(), optimum);
    EXPECT_EQ(sketch.cost(dual.decoded()), optimum) << describe(sketch);
  }
}

TEST(DualBoundTest, LargePassesLoseNoMoreThanTheirPrecision) {
  using Precision = DualBound::Precision;
  const CoreSketch sketch = large_triangle(1);
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  dual.suit_precision(kBestOfLargeTriangle, 0.99 * kBestOfLargeTriangle);
  for (const auto& [precision, loss] :
       {std::pair(Precision::kHalves, 0x1p-11), {Precision::kFloats, 0x1p-23}, {Precision::kDoubles, 0.0}}) {
    EXPECT_EQ(dual.precision(), precision);
    for (int pass = 0; pass < 10; ++pass) dual.pass();
    EXPECT_GT(dual.best_bound(), kBestOfLargeTriangle * (1 - 1.001 * loss) - 1);
    EXPECT_EQ(dual.best_bound() > kBestOfLargeTriangle - 1, precision == Precision::kDoubles);
    EXPECT_LE(dual.best_bound(), kBestOfLargeTriangle);
    EXPECT_EQ(sketch.cost(dual.decoded()), kBestOfLargeTriangle);
    dual.suit_precision(kBestOfLargeTriangle, dual.best_bound());
  }
}

// Rounded entries make the problem cheaper, rounded sums no message too high: neither bound nor reduced costs claim too
// much, also where values were removed and pairs are forbidden.
TEST(DualBoundTest, HalvesClaimNothingFalse) {
  int num_feasible = 0, num_fixed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoreSketch sketch = random_core(random, {.forbidden_percent = 10,
                                             .limit_percent = 50 + static_cast<int>(random.below(50)),
                                             .largest_cost = std::int64_t{1} << random.below(45)});
    sketch.big_m = 0x1p50;
    CoreProblem core = core_of(sketch);
    core.rounded = std::make_shared<const RoundedMatrices>(core.matrices);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    ++num_feasible;
    const double cost = sketch.cost(*best);
    DualBound dual(core);
    for (int pass = 0; pass < 60; ++pass) {
      ASSERT_LE(pass % 3 == 0 ? dual.pass_ahead() : dual.iterate(cost, {}), cost) << describe(sketch);
      ASSERT_EQ(dual.precision(), DualBound::Precision::kHalves);
      if (pass % 10 != 9) continue;
      std::vector<std::uint8_t> alive = dual.alive();
      num_fixed += dual.fix_by_reduced_cost(cost + 1, alive);
      for (std::size_t node = 0; node < core.num_nodes(); ++node) {
        ASSERT_TRUE(alive[core.first_value[node] + (*best)[node]]) << describe(sketch);
      }
      dual.set_alive(std::move(alive));
    }
  }
  EXPECT_GT(num_feasible, 100);
  EXPECT_GT(num_fixed, 50);
}

// Costs of a contest's size: a unit is the twelfth digit, and prices and bytes make more of them.
TEST(DualBoundTest, HoldsWhereCostsHaveTwelveDigits) {
  int num_feasible = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoreSketch sketch = random_core(random, {.forbidden_percent = 0,
                                             .limit_percent = 20 + static_cast<int>(random.below(60)),
                                             .largest_cost = 1'000'000'000'000});
    sketch.big_m = 0x1p50;
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    ++num_feasible;
    DualBound dual(core);
    for (int pass = 0; pass < 100; ++pass) {
      ASSERT_LE(dual.iterate(sketch.cost(*best), {}), sketch.cost(*best)) << describe(sketch);
      ASSERT_LE(dual.certain_bound(), sketch.cost(*best)) << describe(sketch);
    }
  }
  EXPECT_GT(num_feasible, 100);
}

// What is taken off for rounding must be less than a unit, or no choice could ever be proven to be the best: one node that costs
// as much as in the contest's problems does not make the small sums of all others uncertain.
TEST(DualBoundTest, OneLargeCostLeavesTheBoundSharp) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoreSketch sketch = random_core(
        random, {.max_nodes = 400, .forbidden_percent = 0, .largest_cost = 1'000'000, .times = 0, .is_tree = true});
    sketch.big_m = 0x1p52;
    for (double& cost : sketch.costs[0]) cost += 1e13;
    const CoreProblem core = core_of(sketch);
    DualBound dual(core);
    for (std::size_t pass = 0; pass < core.num_nodes(); ++pass) dual.pass();
    EXPECT_LE(dual.best_bound(), sketch.cost(dual.decoded()));
    EXPECT_GT(dual.best_bound(), sketch.cost(dual.decoded()) - 1) << core.num_nodes();
  }
}

TEST(DualBoundTest, AReducedCostIsWhatAValueAddsToTheBoundAtLeast) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    DualBound dual(core);
    for (int pass = 0; pass < 10; ++pass) dual.iterate(50, {});
    dual.pass();
    for_each_choice(sketch, [&](const CoreChoice& choice) {
      if (!sketch.is_feasible(choice)) return;
      for (std::size_t node = 0; node < choice.size(); ++node) {
        EXPECT_GE(sketch.cost(choice), dual.certain_bound() + dual.reduced_cost(node, choice[node]))
            << describe(sketch);
      }
    });
    if (HasFailure()) return;
  }
}

TEST(DualBoundTest, PassesThatBeginAheadBoundTheSameProblem) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.edge_percent = 80, .times = 0});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    DualBound dual(core);
    for (int pass = 0; pass < 30; ++pass) {
      ASSERT_LE(dual.pass_ahead(), sketch.cost(*best)) << describe(sketch);
      for_each_choice(sketch, [&](const CoreChoice& choice) {
        if (!sketch.is_feasible(choice)) return;
        for (std::size_t node = 0; node < choice.size(); ++node) {
          EXPECT_GE(sketch.cost(choice), dual.certain_bound() + dual.reduced_cost(node, choice[node]))
              << describe(sketch);
        }
      });
      if (HasFailure()) return;
    }
    EXPECT_LE(dual.best_bound(), sketch.cost(*best)) << describe(sketch);
  }
}

// A grid of nodes is where plain passes take long: what one corner costs must reach the other.
TEST(DualBoundTest, PassesThatBeginAheadComeFurther) {
  constexpr std::uint32_t kRows = 10, kColumns = 30;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto cost = [&] { return static_cast<double>(random.below(1000)); };
    CoreSketch grid;
    for (std::uint32_t node = 0; node < kRows * kColumns; ++node) {
      grid.costs.push_back({cost(), cost(), cost(), cost(), cost()});
      for (const std::uint32_t before : {1u, kColumns}) {
        if (node < before || (before == 1 && node % kColumns == 0)) continue;
        CoreSketch::Edge edge{node - before, node, {}};
        for (int row = 0; row < 5; ++row) edge.costs.push_back({cost(), cost(), cost(), cost(), cost()});
        grid.edges.push_back(std::move(edge));
      }
    }
    const CoreProblem core = core_of(grid);
    DualBound plain(core), ahead(core);
    for (int pass = 0; pass < 30; ++pass) {
      plain.pass();
      ahead.pass_ahead();
    }
    const double reached = ahead.best_bound();
    EXPECT_GT(reached, plain.best_bound());
    for (int pass = 0; pass < 15; ++pass) plain.pass();
    EXPECT_GE(reached, plain.best_bound()) << "30 passes do not come as far as 45 plain ones";
  }
}

TEST(DualBoundTest, FixingKeepsEveryCheaperChoice) {
  int num_fixed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    const double known = sketch.cost(*best) + static_cast<double>(random.below(4));
    DualBound dual(core);
    for (int pass = 0; pass < 30; ++pass) dual.iterate(known, {});
    dual.pass();
    std::vector<std::uint8_t> alive = dual.alive();
    const bool any = dual.fix_by_reduced_cost(known, alive);
    EXPECT_EQ(any, alive != dual.alive());
    num_fixed += any;
    for_each_choice(sketch, [&](const CoreChoice& choice) {
      if (!sketch.is_feasible(choice) || sketch.cost(choice) >= known) return;
      for (std::size_t node = 0; node < choice.size(); ++node) {
        EXPECT_TRUE(alive[core.first_value[node] + choice[node]]) << describe(sketch);
      }
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(num_fixed, 100);
}

TEST(DualBoundTest, AStateContinuesOnTheRestrictedCore) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    DualBound dual(core);
    for (int pass = 0; pass < 20; ++pass) dual.pass();
    std::vector<std::uint8_t> alive(core.costs.size());
    for (std::uint8_t& item : alive) item = random.below(2) == 0;
    for (std::size_t node = 0; node < core.num_nodes(); ++node) alive[core.first_value[node] + (*best)[node]] = 1;
    const auto restricted = restrict_core(core, alive, 1'000'000);
    ASSERT_TRUE(restricted);
    DualBound smaller(restricted->core);
    smaller.restore(dual.restricted_state(*restricted), std::vector<std::uint8_t>(restricted->core.costs.size(), 1));
    EXPECT_EQ(smaller.best_bound(), dual.best_bound());
    // With fewer values the same messages bound no less than they did (but for what is taken off for rounding).
    EXPECT_GE(smaller.pass(), dual.best_bound() - 1e-3) << describe(sketch);
    EXPECT_LE(smaller.best_bound(), sketch.cost(*best));
  }
}

TEST(DualBoundTest, ANodeWithoutValuesHasAnInfiniteBound) {
  CoreSketch sketch;
  sketch.costs = {{1, 2}, {3}};
  sketch.edges = {{0, 1, {{1}, {2}}}};
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  dual.set_alive({0, 0, 1});
  EXPECT_EQ(dual.pass(), kInfinity);
}

// A first choice may cost many times the optimum; steps towards its cost lead far away, and must become short soon.
TEST(DualBoundTest, AFarTargetCostsFewPasses) {
  int num_near = 0, num_cores = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 9,
                                                   .max_values = 5,
                                                   .edge_percent = 30,
                                                   .forbidden_percent = 0,
                                                   .limit_percent = 30,
                                                   .largest_cost = 1000});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    const double optimum = sketch.cost(*best);
    const auto bound_after = [&](int passes, double target) {
      DualBound dual(core);
      for (int pass = 0; pass < passes; ++pass) dual.iterate(target, {});
      return dual.best_bound();
    };
    const double reference = bound_after(400, optimum);
    if (reference < 0.5 * optimum) continue;
    ++num_cores;
    num_near += bound_after(120, 20 * optimum) > reference - 0.05 * optimum;
  }
  EXPECT_GT(num_cores, 40);
  EXPECT_GT(num_near, num_cores * 9 / 10);
}

TEST(DualBoundTest, PricesAreThoseOfTheBytes) {
  CoreSketch sketch;
  sketch.costs = {{1, 2}};
  sketch.segments = {{0, 0, 2, {5, 0}}};
  sketch.limits = {3, 4};
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  dual.set_prices({2, 0.5});
  EXPECT_NEAR(dual.price_of_bytes(0, 0), 5 * 2.5, 1e-9);  // rounded down
  EXPECT_NEAR(dual.price_of_bytes(0, 1), 0, 1e-9);
  // min(1 + 12.5, 2) - 3 * 2 - 4 * 0.5 = -6: prices that are too high bound badly.
  EXPECT_NEAR(dual.pass(), -6, 1e-9);
}

}  // namespace
}  // namespace shardplan
