#include "report/plan_file/plan_json.h"

#include <gtest/gtest.h>

#include "tests/support/hand_plan.h"
#include "tests/support/python.h"

namespace shardplan {
namespace {

TEST(PlanJsonTest, FollowsItsSchema) {
  EXPECT_TRUE(
      python_accepts("import json\n"
                     "plan, schema = json.load(open('plan.json')), json.load(open('schema.json'))\n"
                     "try:\n  import jsonschema\nexcept ImportError:\n  raise SystemExit(0)\n"
                     "jsonschema.validate(plan, schema)\n",
                     {{"plan.json", plan_json(tiny_plan())}, {"schema.json", plan_schema()}}));
}

}  // namespace
}  // namespace shardplan
