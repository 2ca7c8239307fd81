#include "report/plan_file/plan_json.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "tests/support/hand_plan.h"
#include "tests/support/python.h"

namespace shardplan {
namespace {

TEST(PlanJsonTest, FollowsItsSchema) {
  if (!has_jsonschema()) {
    GTEST_SKIP() << "there is no python3 with jsonschema: plan.json is not compared with its schema";
  }
  Plan beside = tiny_plan();
  beside.is_overlapped = true;  // with a critical path
  for (const Plan& plan : {tiny_plan(), beside}) {
    EXPECT_TRUE(meets_schema(plan_json(plan), plan_schema()));
  }
}

/// What an instruction says is in the schema: here those of a softmax in phases and of a convolution with halos.
TEST(PlanJsonTest, TheSchemaHasEveryKeyOfAnInstruction) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
model: phases
cluster: ascend-910
inputs: {x: [16, 64], image: [8, 4, 32, 32]}
parameters: {w: [4, 4, 3, 3]}
operators:
  soft: {op: Softmax, in: x, in_strategy: ((1, 8),)}
  conv: {op: Conv2D, in: [image, w], pad_mode: same, in_strategy: ((1, 1, 8, 1), (1, 1, 1, 1))}
outputs: [soft, conv]
parallel: {parallel_mode: auto_parallel}
)",
                                                                   "phases.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), {}).plan(Level::kSpeed, "auto");
  const auto document = nlohmann::json::parse(plan_json(plan));
  const auto known = nlohmann::json::parse(plan_schema())["properties"]["program"]["items"]["properties"];
  std::set<std::string> kinds;
  for (const auto& instruction : document["program"]) {
    kinds.insert(instruction["kind"]);
    for (const auto& [key, value] : instruction.items()) EXPECT_TRUE(known.contains(key)) << key;
  }
  EXPECT_TRUE(kinds.contains("phase"));
  EXPECT_TRUE(kinds.contains("halo"));
}

}  // namespace
}  // namespace shardplan
