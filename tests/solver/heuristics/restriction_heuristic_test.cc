#include "solver/heuristics/restriction_heuristic.h"

#include <gtest/gtest.h>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(RestrictionHeuristicTest, FindsGoodChoicesOfCyclesThatDecodingMisses) {
  int num_found = 0, num_best = 0, num_decoded = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch =
        random_core(random, {.max_nodes = 7, .max_values = 6, .edge_percent = 90, .forbidden_percent = 0, .times = 0});
    const CoreProblem core = core_of(sketch);
    DualBound dual(core);
    for (int pass = 0; pass < 10; ++pass) dual.pass();
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, 1'000'000'000);
    const auto found = restriction_heuristic(core, dual, meter);
    if (!found) continue;  // so few values a node that no share of them leaves a choice
    ++num_found;
    const double optimum = sketch.cost(*brute_force(sketch));
    EXPECT_GE(sketch.cost(found->choice), optimum);
    num_best += sketch.cost(found->choice) == optimum;
    const auto again = restriction_heuristic(core, dual, meter, found->share);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->choice, found->choice);
    const auto fewer = restriction_heuristic(core, dual, meter, found->share + 1);
    EXPECT_TRUE(!fewer || fewer->share > found->share);
    num_decoded += sketch.cost(dual.decoded()) == optimum;
  }
  EXPECT_GT(num_found, 200);
  EXPECT_GT(num_best, num_found * 9 / 10);
  EXPECT_GT(num_best, num_decoded);
}

TEST(RestrictionHeuristicTest, PromisingValuesAreThoseOfLeastExcessAndTheBestOfEachNode) {
  CoreSketch sketch;
  sketch.costs = {{0, 1, 9}, {5, 3, 4}, {7}};
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  dual.pass();  // excess 0 1 9 | 2 0 1 | 0
  const auto values = [&](double per_node) { return promising_values(core, dual, per_node); };
  EXPECT_EQ(values(0), (std::vector<std::uint8_t>{1, 0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(values(1), (std::vector<std::uint8_t>{1, 1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(values(5.0 / 3), (std::vector<std::uint8_t>{1, 1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(values(100), (std::vector<std::uint8_t>(7, 1)));
  std::vector<std::uint8_t> alive(7, 1);
  alive[1] = 0;
  dual.set_alive(alive);
  dual.pass();
  EXPECT_EQ(values(100), alive);
}

TEST(RestrictionHeuristicTest, PricesOfBytesCount) {
  // One node, four values: the cheapest holds 10 bytes at a price of 1 each.
  CoreSketch sketch;
  sketch.costs = {{0, 4, 5, 50}};
  sketch.segments = {{0, 0, 1, {10, 0, 0, 0}}};
  sketch.limits = {3};
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  dual.set_prices({1});
  dual.pass();
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 1'000'000);
  EXPECT_EQ(restriction_heuristic(core, dual, meter)->choice, CoreChoice{1});
}

}  // namespace
}  // namespace shardplan
