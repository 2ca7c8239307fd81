#include "report/text/strategy_table.h"

#include <gtest/gtest.h>

#include <memory>

#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

TEST(StrategyTableTest, HasOneLinePerOperator) {
  EXPECT_EQ(strategy_table(block_plan()),
            "block1.in0  ((1, 8)) -> [{}, {pcie, hccs}]  search\n"
            "block1.dense1.matmul  ((1, 8), (1, 8)) -> [{}, {}] unreduced={pcie, hccs}  search\n"
            "block1.dense1.bias_add  ((8, 1), (1)) -> [{pcie, hccs}, {}]  search\n"
            "block1.gelu  ((8, 1)) -> [{pcie, hccs}, {}]  search\n"
            "block1.dense2.matmul  ((8, 1), (1, 1)) -> [{pcie, hccs}, {}]  search\n"
            "block1.dense2.bias_add  ((8, 1), (1)) -> [{pcie, hccs}, {}]  search\n");
}

/// The user gives the layouts at both borders of a block.
TEST(StrategyTableTest, BordersAreTheUsers) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [64, 64]}
blocks:
  layer:
    inputs: {x: [64, 64]}
    operators: {fc: {block: nn.Dense, in: x, out_channels: 64}}
operators:
  layer: {block: layer, in: x, in_strategy: [[8, 1]], out_strategy: [[1, 8]]}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
  for (const char* const border : {"layer.in0", "layer.out0"}) {
    const auto op = plan.graph->find_operator(border);
    ASSERT_TRUE(op) << border;
    EXPECT_EQ(strategy_origin(plan, *op), "user") << border;
  }
  EXPECT_EQ(strategy_origin(plan, *plan.graph->find_operator("layer.fc.matmul")), "search");
}

}  // namespace
}  // namespace shardplan
