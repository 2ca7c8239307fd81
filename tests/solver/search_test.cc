#include "solver/search.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(SearchTest, EveryStatusHasItsName) {
  EXPECT_EQ(to_string(PlanStatus::kOptimal), "optimal");
  EXPECT_EQ(to_string(PlanStatus::kFeasible), "feasible");
  EXPECT_EQ(to_string(PlanStatus::kInfeasible), "infeasible");
  EXPECT_EQ(to_string(PlanStatus::kNoPlanFound), "none_found");
}

}  // namespace
}  // namespace shardplan
