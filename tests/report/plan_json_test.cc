#include "report/plan_file/plan_json.h"

#include <gtest/gtest.h>

#include "tests/support/hand_plan.h"
#include "tests/support/python.h"

namespace shardplan {
namespace {

TEST(PlanJsonTest, FollowsItsSchema) {
  if (std::system("python3 -c 'import json, jsonschema' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no python3 with jsonschema: plan.json is not compared with its schema";
  }
  Plan beside = tiny_plan();
  beside.is_overlapped = true;  // with a critical path
  for (const Plan& plan : {tiny_plan(), beside}) {
    EXPECT_TRUE(meets_schema(plan_json(plan), plan_schema()));
  }
}

}  // namespace
}  // namespace shardplan
