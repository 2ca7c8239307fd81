#include "report/text/strategy_table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace shardplan
