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
  for (std::size_t i = 0; i < 100'000; ++i) {
    names.push_back("layers." + std::to_string(i));
    EXPECT_TRUE(table.add(i, name_at));
  }
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.find(names[i], name_at), i);
  EXPECT_EQ(table.find("layers.100000", name_at), std::nullopt);
  EXPECT_EQ(table.find("", name_at), std::nullopt);
}

TEST(NameTableTest, RoomFromTheBeginningChangesNothing) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 3000; ++i) names.push_back(std::to_string(i % 2900));
  const auto name_at = [&](std::size_t i) -> std::string_view { return names[i]; };
  NameTable table;
  table.reserve(100);  // fewer than follow
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.add(i, name_at), i < 2900);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.find(names[i], name_at), i % 2900);
  EXPECT_EQ(table.find("2900", name_at), std::nullopt);
}

TEST(NameTableTest, PositionsMayBeFarApart) {
  const auto name_at = [](std::size_t i) -> std::string_view { return i == 4095 ? "x" : "y"; };
  NameTable table;
  EXPECT_TRUE(table.add(4095, name_at));
  EXPECT_TRUE(table.add(70'000, name_at));
  EXPECT_EQ(table.find("x", name_at), 4095u);
  EXPECT_EQ(table.find("y", name_at), 70'000u);
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
