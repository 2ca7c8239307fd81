#include "solver/presolve/edge_normal_form.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardplan {
namespace {

constexpr std::int64_t kX = kForbidden;

struct FormOf {
  SharedTables shared;
  EdgeNormalForm form;
  explicit FormOf(CostMatrix table) : form(normal_form(shared.tables.intern(std::move(table)), shared)) {}
};

TEST(EdgeNormalFormTest, LeastOfRowsThenOfColumnsAreTakenOff) {
  const FormOf result({2, 2, {3, 5, 6, 7}});
  EXPECT_EQ(result.form.table->costs, (std::vector<std::int64_t>{0, 1, 0, 0}));
  EXPECT_EQ(*result.form.row_shift, (std::vector<std::int64_t>{3, 6}));
  EXPECT_EQ(*result.form.column_shift, (std::vector<std::int64_t>{0, 1}));
  EXPECT_FALSE(result.form.row_map);
  EXPECT_FALSE(result.form.column_map);
}

TEST(EdgeNormalFormTest, ASeparableTableVanishes) {
  const FormOf result({2, 3, {10 + 1, 10 + 2, 10 + 3, 20 + 1, 20 + 2, 20 + 3}});
  EXPECT_FALSE(result.form.table);
  EXPECT_EQ(*result.form.row_shift, (std::vector<std::int64_t>{11, 21}));
  EXPECT_EQ(*result.form.column_shift, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(EdgeNormalFormTest, RowsAndColumnsOfForbiddenPairsAreDead) {
  const FormOf result({3, 3, {kX, 1, 2, kX, kX, kX, kX, 3, 4}});
  EXPECT_EQ(*result.form.dead_rows, std::vector<std::uint32_t>{1});
  EXPECT_EQ(*result.form.dead_columns, std::vector<std::uint32_t>{0});
}

TEST(EdgeNormalFormTest, OneAllowedPairARowMakesAFunction) {
  const FormOf onto({3, 2, {5, kX, kX, 6, 7, kX}});
  EXPECT_EQ(*onto.form.row_map, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_FALSE(onto.form.column_map);  // column 0 has two rows
  const FormOf one_to_one({2, 2, {kX, 5, 6, kX}});
  EXPECT_EQ(*one_to_one.form.row_map, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(*one_to_one.form.column_map, (std::vector<std::uint32_t>{1, 0}));
}

TEST(EdgeNormalFormTest, ShiftsAndTableAddUpToTheOriginal) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CostMatrix table{
        static_cast<std::uint32_t>(1 + random.below(5)), static_cast<std::uint32_t>(1 + random.below(5)), {}};
    const std::uint64_t forbidden = random.below(100);
    for (std::size_t i = 0; i < std::size_t{table.rows} * table.columns; ++i) {
      table.costs.push_back(random.below(100) < forbidden ? kForbidden : static_cast<std::int64_t>(random.below(9)));
    }
    const FormOf result(table);
    const auto is_dead = [](const Positions& dead, std::size_t at) {
      return std::find(dead->begin(), dead->end(), at) != dead->end();
    };
    const auto left = [&](std::size_t row, std::size_t column) {
      return result.form.table ? result.form.table->at(row, column) : 0;
    };
    for (std::size_t row = 0; row < table.rows; ++row) {
      bool has_zero = false;
      for (std::size_t column = 0; column < table.columns; ++column) {
        if (table.at(row, column) >= kForbidden) {
          EXPECT_GE(left(row, column), kForbidden);
          continue;
        }
        EXPECT_FALSE(is_dead(result.form.dead_rows, row) || is_dead(result.form.dead_columns, column));
        EXPECT_GE(left(row, column), 0);
        has_zero = has_zero || left(row, column) == 0;
        EXPECT_EQ(left(row, column) + (*result.form.row_shift)[row] + (*result.form.column_shift)[column],
                  table.at(row, column));
      }
      EXPECT_TRUE(is_dead(result.form.dead_rows, row) || result.form.dead_columns->size() > 0 || has_zero);
    }
  }
}

}  // namespace
}  // namespace shardplan
