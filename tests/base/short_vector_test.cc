#include "base/short_vector.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/index.h"

namespace shardplan {
namespace {

using ItemId = Index<struct ItemTag>;

/// A ShortVector behaves as std::vector does.
template <class Change>
void expect_as_vector(std::size_t size, const Change& change) {
  ShortVector<int> mine;
  std::vector<int> usual;
  for (std::size_t i = 0; i < size; ++i) {
    mine.push_back(static_cast<int>(10 * i));
    usual.push_back(static_cast<int>(10 * i));
  }
  change(mine);
  change(usual);
  EXPECT_EQ(mine, usual) << "of " << size;
  EXPECT_EQ(mine.size(), usual.size());
  EXPECT_EQ(mine.empty(), usual.empty());
  EXPECT_EQ(std::vector<int>(mine), usual);
}

TEST(ShortVectorTest, ItChangesAsAVectorDoesInsideAndOutside) {
  for (std::size_t size = 1; size < 12; ++size) {
    expect_as_vector(size, [](auto& list) { list.push_back(7); });
    expect_as_vector(size, [](auto& list) { list.push_back(list.front()); });
    expect_as_vector(size, [](auto& list) { list.pop_back(); });
    expect_as_vector(size, [](auto& list) { list.clear(); });
    expect_as_vector(size, [](auto& list) { list.erase(list.begin()); });
    expect_as_vector(size, [&](auto& list) { list.erase(list.begin() + static_cast<int>(size) / 2, list.end()); });
    expect_as_vector(size, [](auto& list) { list.insert(list.begin() + 1, 5); });
    expect_as_vector(size, [](auto& list) { list.insert(list.end(), list.front()); });
    expect_as_vector(size, [](auto& list) { list.resize(9, list.back()); });
    expect_as_vector(size, [](auto& list) { list.resize(1); });
    expect_as_vector(size, [](auto& list) { list.assign(6, 3); });
    expect_as_vector(size, [](auto& list) { list.emplace_back(4) = 8; });
    expect_as_vector(size, [](auto& list) { list.back() = list[0] + 1; });
  }
}

TEST(ShortVectorTest, CopiesAreTheirOwnAndWhatIsMovedIsEmpty) {
  for (const int size : {2, 4, 5, 40}) {
    ShortVector<ItemId> list;
    for (int i = 0; i < size; ++i) list.push_back(ItemId(static_cast<std::size_t>(i)));
    ShortVector<ItemId> copy = list;
    copy[0] = ItemId(99);
    EXPECT_EQ(list[0], ItemId(0));
    EXPECT_FALSE(copy == list);
    const ShortVector<ItemId> expected = list;
    ShortVector<ItemId> moved = std::move(list);
    EXPECT_EQ(moved, expected);
    EXPECT_TRUE(list.empty());  // NOLINT: a moved-from list is empty
    list = {ItemId(3)};
    moved = std::move(list);
    EXPECT_EQ(moved, std::vector<ItemId>{ItemId(3)});
    moved = copy;
    EXPECT_EQ(moved, copy);
    const ShortVector<ItemId>& self = moved;
    moved = self;
    EXPECT_EQ(moved, copy);
  }
}

TEST(ShortVectorTest, FewItemsStandInTheVectorItself) {
  const auto is_inside = [](const auto& list) {
    const auto* const at = reinterpret_cast<const unsigned char*>(list.data());
    const auto* const own = reinterpret_cast<const unsigned char*>(&list);
    return at >= own && at < own + sizeof(list);
  };
  EXPECT_EQ(sizeof(ShortVector<ItemId>), 24U);
  EXPECT_TRUE(is_inside(ShortVector<ItemId>(4)));
  EXPECT_FALSE(is_inside(ShortVector<ItemId>(5)));
  EXPECT_TRUE(is_inside(ShortVector<std::optional<ItemId>>(2)));
  EXPECT_FALSE(is_inside(ShortVector<std::optional<ItemId>>(3)));
}

}  // namespace
}  // namespace shardplan
