#include "planner/search/bound_beside.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace shardplan {
namespace {

Choice choice_of(std::size_t strategy) {
  Choice choice;
  choice.strategy.push_back(StrategyId(strategy));
  return choice;
}

LevelValue bound_from(const Choice& choice) {
  return {Level::kRatio, static_cast<std::int64_t>(choice.strategy[NodeId(0)].value())};
}

TEST(BoundBesideTest, IsOfTheLastChoiceAndSoughtOnceForEach) {
  std::atomic<int> count = 0;
  BoundBeside bound(
      [&](const Choice& known, std::stop_token) {
        ++count;
        return bound_from(known);
      },
      {});
  bound.begin(choice_of(3));
  bound.begin(choice_of(3));
  bound.begin(choice_of(5));
  bound.begin(choice_of(5));
  EXPECT_EQ(bound.get(), (LevelValue{Level::kRatio, 5}));
  EXPECT_EQ(count, 2);
}

/// Runs until it is asked to stop.
LevelValue wait_for_stop(const Choice& known, const std::stop_token& stop) {
  while (!stop.stop_requested()) std::this_thread::yield();
  return bound_from(known);
}

TEST(BoundBesideTest, EndsWhatNobodyWaitsFor) {
  const auto seek = [](const Choice& known, std::stop_token stop) {
    return known == choice_of(9) ? bound_from(known) : wait_for_stop(known, stop);
  };
  {
    BoundBeside bound(seek, {});
    bound.begin(choice_of(1));
    bound.begin(choice_of(9));  // ends the first one
    EXPECT_EQ(bound.get(), (LevelValue{Level::kRatio, 9}));
  }
  BoundBeside bound(seek, {});
  bound.begin(choice_of(2));  // ended with its owner
}

TEST(BoundBesideTest, EndsWhenTheCallerIsAskedToStop) {
  std::stop_source stop;
  BoundBeside bound(wait_for_stop, stop.get_token());
  bound.begin(choice_of(4));
  stop.request_stop();
  EXPECT_EQ(bound.get(), (LevelValue{Level::kRatio, 4}));
}

}  // namespace
}  // namespace shardplan
