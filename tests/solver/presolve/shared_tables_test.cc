#include "solver/presolve/shared_tables.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(SharedTablesTest, EqualTablesAreOneAndShapesCount) {
  SharedTables shared;
  const TableRef table = shared.tables.intern(CostMatrix{2, 3, {1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(shared.tables.intern(CostMatrix{2, 3, {1, 2, 3, 4, 5, 6}}), table);
  EXPECT_NE(shared.tables.intern(CostMatrix{3, 2, {1, 2, 3, 4, 5, 6}}), table);
  EXPECT_NE(shared.tables.intern(CostMatrix{2, 3, {1, 2, 3, 4, 5, 7}}), table);
}

TEST(SharedTablesTest, ListsOfNumbersAndOfPositionsAreApart) {
  SharedTables shared;
  const Numbers numbers = shared.numbers.intern({1, 2, 3});
  EXPECT_EQ(shared.numbers.intern({1, 2, 3}), numbers);
  const Positions positions = shared.positions.intern({1, 2, 3});
  EXPECT_EQ(*positions, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(shared.positions.intern({1, 2, 3}), positions);
}

}  // namespace
}  // namespace shardplan
