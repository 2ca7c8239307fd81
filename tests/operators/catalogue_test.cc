#include "operators/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardplan {
namespace {

TEST(CatalogueTest, IsSortedAndFound) {
  const std::vector<OperatorType>& all = operator_catalogue();
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &OperatorType::name));
  for (const OperatorType& type : all) EXPECT_EQ(find_operator_type(type.name), &type) << type.name;
  EXPECT_EQ(find_operator_type("Relu"), nullptr);
}

}  // namespace
}  // namespace shardplan
