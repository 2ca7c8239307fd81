#include "planner/level.h"

#include <gtest/gtest.h>

#include "planner/plan.h"

namespace shardplan {
namespace {

TEST(LevelTest, AFigureCarriesItsUnit) {
  EXPECT_EQ(to_string(LevelValue{Level::kRatio, 5'630'000'000}), "5.63 ms");
  EXPECT_EQ(to_string(LevelValue{Level::kMemory, 28'311'552}), "27.0 MiB");
  EXPECT_EQ(to_string(LevelValue{Level::kSpeed, 25'100'000}), "25.1 us");
}

TEST(LevelTest, NumbersAndNames) {
  const char* names[] = {"ratio", "memory", "speed"};
  for (const Level level : kLevels) {
    EXPECT_EQ(level_of(number_of(level)), level);
    EXPECT_EQ(to_string(level), names[number_of(level)]);
  }
}

TEST(LevelTest, TheGapIsAShareOfTheBound) {
  const auto of = [](std::int64_t amount) { return LevelValue{Level::kSpeed, amount}; };
  EXPECT_EQ(gap(of(150), of(100)), 0.5);
  EXPECT_EQ(gap(of(100), of(100)), 0.0);
  EXPECT_EQ(gap(of(0), of(0)), 0.0);
  EXPECT_EQ(gap(of(90), of(100)), 0.0);  // a bound of another, weaker quantity
  EXPECT_EQ(gap(of(1), of(0)), std::nullopt);
}

TEST(LevelTest, EachLevelMakesItsOwnQuantityLeast) {
  const StepTime time{.computation = 70, .communication = 30, .exposed = 20, .repeated = 5};
  EXPECT_EQ(value_at(Level::kRatio, time, 1000), (LevelValue{Level::kRatio, 30}));
  EXPECT_EQ(value_at(Level::kMemory, time, 1000), (LevelValue{Level::kMemory, 1000}));
  EXPECT_EQ(value_at(Level::kSpeed, time, 1000), (LevelValue{Level::kSpeed, 100}));
}

}  // namespace
}  // namespace shardplan
