#include "base/task_beside.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace shardplan {
namespace {

/// Ends only when it is asked to.
int wait_for(std::stop_token stop) {
  while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return 7;
}

TEST(TaskBesideTest, GivesItsResult) {
  TaskBeside<int> task([](std::stop_token stop) { return stop.stop_requested() ? 0 : 5; }, {});
  EXPECT_EQ(task.get(), 5);
}

TEST(TaskBesideTest, EndsWithItsObjectAndWithItsCallersToken) {
  { const TaskBeside<int> unneeded(wait_for, {}); }
  std::stop_source stop;
  TaskBeside<int> task(wait_for, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(task.get(), 7);
}

}  // namespace
}  // namespace shardplan
