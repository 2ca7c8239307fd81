#include "base/shared_value.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

struct Part {
  std::string name;
  std::vector<int> items;

  bool operator==(const Part&) const = default;
};

TEST(SharedValueTest, ADefaultOneIsTheDefaultValue) {
  const SharedValue<Part> none;
  EXPECT_EQ(*none, Part{});
  EXPECT_TRUE(none->items.empty());
  EXPECT_EQ(none, SharedValue<Part>(Part{}));
}

TEST(SharedValueTest, CopiesAreOneObjectUntilOneIsChanged) {
  SharedValue<Part> first = Part{"a", {1, 2}};
  SharedValue<Part> second = first;
  EXPECT_EQ(&*first, &*second);
  second.edit().items.push_back(3);
  EXPECT_EQ(first->items, (std::vector<int>{1, 2}));
  EXPECT_EQ(second->items, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(first == second);
  EXPECT_TRUE(first == (Part{"a", {1, 2}}));
  EXPECT_FALSE((Part{"a", {1, 2}}) == second);
  const Part* const own = &*second;
  second.edit().name = "b";  // there is no other owner
  EXPECT_EQ(&*second, own);
}

TEST(SharedValueTest, ADefaultOneCanBeChanged) {
  SharedValue<Part> value;
  value.edit().name = "a";
  EXPECT_EQ(value->name, "a");
  EXPECT_EQ(*SharedValue<Part>(), Part{});
}

TEST(SharedValueTest, WhatIsAssignedOrMovedKeepsItsValue) {
  SharedValue<Part> first = Part{"a", {}};
  SharedValue<Part>& same = first;
  first = same;
  EXPECT_EQ(first->name, "a");
  SharedValue<Part> second = std::move(first);
  EXPECT_EQ(second->name, "a");
  second = Part{"b", {}};
  EXPECT_EQ(second->name, "b");
}

}  // namespace
}  // namespace shardplan
