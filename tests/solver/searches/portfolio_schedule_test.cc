#include "solver/searches/portfolio_schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace shardplan {
namespace {

/// The engines of sixteen rounds, a letter each: Bound, Dive, Trees, blOcks, Exact.
std::string rounds(int thread, const PortfolioSituation& situation) {
  std::string text;
  for (std::uint64_t round = 0; round < 16; ++round) {
    text += "BDTOE"[static_cast<std::size_t>(scheduled_engine(round, thread, situation))];
  }
  return text;
}

TEST(PortfolioScheduleTest, EachSituationHasItsRounds) {
  EXPECT_EQ(rounds(0, {}), "DTOOBTOODTOOBTOO");
  EXPECT_EQ(rounds(1, {}), "DOTTBOTTDOTTBOTT");  // out of step with the first, but in bounds and dives
  EXPECT_EQ(rounds(2, {}), rounds(0, {}));
  EXPECT_EQ(rounds(0, {.is_bound_settled = true}), "DTOODTOODTOODTOO");
  EXPECT_EQ(rounds(0, {.shares_exact = true}), "EBTEOTEOEBTEODEO");
  EXPECT_EQ(rounds(1, {.shares_exact = true}), "EBOETOETEBOETDET");
  EXPECT_EQ(rounds(0, {.shares_exact = true, .is_bound_settled = true}), "EDTEOTEOEDTEODEO");
  EXPECT_EQ(rounds(0, {.has_bound = false}), "TTTOTTTOTTTOTTTO");
  EXPECT_EQ(rounds(1, {.has_bound = false}), "TTOTTTOTTTOTTTOT");
  EXPECT_EQ(rounds(0, {.uses_exact = true}), "EEEEEEETEEEEEEEO");
  EXPECT_EQ(rounds(1, {.uses_exact = true}), "EEEEEEEEEEEEEEEE");
}

TEST(PortfolioScheduleTest, EveryEngineHasAName) {
  for (const Engine engine : kEngines) EXPECT_FALSE(to_string(engine).empty());
}

}  // namespace
}  // namespace shardplan
