#include "operators/operation.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(OperationTest, WritesAttributesAsMindSporeDoes) {
  EXPECT_EQ(to_string(Attribute(true)), "true");
  EXPECT_EQ(to_string(Attribute(std::vector<std::int64_t>{1, 2})), "(1, 2)");
  EXPECT_EQ(to_string(Attribute(0.5)), "0.5");
}

}  // namespace
}  // namespace shardplan
