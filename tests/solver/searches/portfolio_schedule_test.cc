#include "solver/searches/portfolio_schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace shardplan {
namespace {

/// The engines of the first rounds, a letter each: Bound, Dive, Part, Trees, blOcks, Exact.
std::string rounds(int thread, const PortfolioSituation& situation, std::uint64_t count = 16) {
  std::string text;
  for (std::uint64_t round = 0; round < count; ++round) {
    text += "BDPTOE"[static_cast<std::size_t>(scheduled_engine(round, thread, situation))];
  }
  return text;
}

TEST(PortfolioScheduleTest, EachSituationHasItsRounds) {
  EXPECT_EQ(rounds(0, {}), "DTOOBTOOPTOOBTOO");
  EXPECT_EQ(rounds(1, {}), "DOTTBOTTPOTTBOTT");  // out of step with the first, but in bounds, dives and parts
  EXPECT_EQ(rounds(2, {}), rounds(0, {}));
  EXPECT_EQ(rounds(0, {.is_bound_settled = true}), "DTOOPTOOPTOOPTOO");
  EXPECT_EQ(rounds(0, {.is_bound_settled = true, .searches_parts = false}), "DTOODTOODTOODTOO");
  EXPECT_EQ(rounds(0, {.shares_exact = true}), "EBTEOTEOEBTEOPEO");
  EXPECT_EQ(rounds(1, {.shares_exact = true}), "EBOETOETEBOETPET");
  EXPECT_EQ(rounds(0, {.shares_exact = true, .is_bound_settled = true}), "EPTEOTEOEPTEOPEO");
  EXPECT_EQ(rounds(0, {.has_bound = false}), "TTTOTTTOTTTOTTTO");
  EXPECT_EQ(rounds(1, {.has_bound = false}), "TTOTTTOTTTOTTTOT");
  EXPECT_EQ(rounds(0, {.uses_exact = true}, 32), "EEEEEEETEEEEEEEOEEEEEEEPEEEEEEET");
  EXPECT_EQ(rounds(0, {.uses_exact = true, .searches_parts = false}, 24), "EEEEEEETEEEEEEEOEEEEEEET");
  EXPECT_EQ(rounds(1, {.uses_exact = true}), "EEEEEEEEEEEEEEEE");
}

TEST(PortfolioScheduleTest, EveryEngineHasAName) {
  for (const Engine engine : kEngines) EXPECT_FALSE(to_string(engine).empty());
}

}  // namespace
}  // namespace shardplan
