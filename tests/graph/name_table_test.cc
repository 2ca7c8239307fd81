#include "graph/name_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardplan {
namespace {

TEST(NameTableTest, FindsEveryNameAndNoOther) {
  std::vector<std::string> names;
  NameTable table;
  const auto name_at = [&](std::size_t i) -> std::string_view { return names[i]; };
  EXPECT_EQ(table.find("layers.0", name_at), std::nullopt);
  for (std::size_t i = 0; i < 1000; ++i) {
    names.push_back("layers." + std::to_string(i));
    EXPECT_TRUE(table.add(i, name_at));
  }
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.find(names[i], name_at), i);
  EXPECT_EQ(table.find("layers.1000", name_at), std::nullopt);
  EXPECT_EQ(table.find("", name_at), std::nullopt);
}

TEST(NameTableTest, TheFirstPositionOfANameCounts) {
  const std::vector<std::string> names = {"x", "y", "x"};
  const auto name_at = [&](std::size_t i) -> std::string_view { return names[i]; };
  NameTable table;
  EXPECT_TRUE(table.add(0, name_at));
  EXPECT_TRUE(table.add(1, name_at));
  EXPECT_FALSE(table.add(2, name_at));
  EXPECT_EQ(table.find("x", name_at), 0u);
  table.clear();
  EXPECT_EQ(table.find("x", name_at), std::nullopt);
}

}  // namespace
}  // namespace shardplan
