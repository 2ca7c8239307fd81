#include "solver/interned.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

using Items = std::vector<std::int64_t>;

TEST(InternedTest, EqualContentsAreOneObject) {
  InternPool<Items> pool;
  const Interned<Items> first = pool.intern({1, 2, 3});
  const Interned<Items> equal = pool.intern({1, 2, 3});
  const Interned<Items> other = pool.intern({1, 2});
  EXPECT_EQ(first, equal);
  EXPECT_NE(first, other);
  EXPECT_EQ(*first, (Items{1, 2, 3}));
}

TEST(InternedTest, APoolForgetsWhatNobodyHolds) {
  InternPool<Items> pool;
  Interned<Items> object = pool.intern({1, 2, 3});
  const std::weak_ptr<const Items> watched = object;
  object.reset();
  EXPECT_TRUE(watched.expired());
  object = pool.intern({1, 2, 3});
  EXPECT_EQ(*object, (Items{1, 2, 3}));
}

TEST(InternedTest, NumbersFollowTheFirstAppearance) {
  NumberedPool<Items> pool;
  const Items list = {7, 8};
  EXPECT_EQ(pool.number(list), 0u);
  EXPECT_EQ(pool.number(Items{}), 1u);
  EXPECT_EQ(pool.number(Items{7, 8}), 0u);
  EXPECT_EQ(pool.number(Items{8, 7}), 2u);
  EXPECT_EQ(pool.size(), 3u);
  EXPECT_EQ(pool[2], (Items{8, 7}));
  EXPECT_EQ(pool.release(), (std::vector<Items>{{7, 8}, {}, {8, 7}}));
  EXPECT_EQ(pool.size(), 0u);
  EXPECT_EQ(pool.number(Items{5}), 0u);
}

TEST(InternedTest, HashesSeeEveryItemAndItsPlace) {
  // Four lanes of eight bytes and one more item, so that each lane is used, one of them twice.
  Items items = {1, 2, 3, 4, 5};
  const std::uint64_t hash = content_hash(items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    Items changed = items;
    changed[i] += 1;
    EXPECT_NE(content_hash(changed), hash) << i;
    std::swap(items[0], items[i]);
    EXPECT_EQ(content_hash(items) == hash, i == 0) << i;
    std::swap(items[0], items[i]);
  }
  EXPECT_NE(content_hash(Items{0}), content_hash(Items{0, 0}));
  EXPECT_NE(content_hash(std::vector<double>{0.5}), content_hash(std::vector<double>{0.25}));
}

TEST(InternedTest, AMemoComputesOncePerOperands) {
  InternPool<Items> pool;
  const Interned<Items> a = pool.intern({1});
  const Interned<Items> b = pool.intern({2});
  Memo<int> memo;
  int computed = 0;
  const auto compute = [&] { return ++computed; };
  EXPECT_EQ(memo.get({a, b}, compute), 1);
  EXPECT_EQ(memo.get({b, a}, compute), 2);  // the order matters
  EXPECT_EQ(memo.get({pool.intern({1}), b}, compute), 1);
  EXPECT_EQ(memo.get({a, nullptr}, compute), 3);
  memo.clear();
  EXPECT_EQ(memo.get({a, b}, compute), 4);
}

}  // namespace
}  // namespace shardplan
