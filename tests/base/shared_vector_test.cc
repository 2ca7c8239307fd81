#include "base/shared_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"

namespace shardplan {
namespace {

using Items = SharedVector<std::vector<int>>;

TEST(SharedVectorTest, CopiesShareUntilOneIsChanged) {
  const Items original = {{1}, {2, 3}};
  Items copy = original;
  EXPECT_EQ(&original.items(), &std::as_const(copy).items());
  copy.push_back({4});
  EXPECT_EQ(original.size(), 2u);
  EXPECT_EQ(copy.items(), (std::vector<std::vector<int>>{{1}, {2, 3}, {4}}));
  copy = original;
  copy[0] = {5};
  EXPECT_EQ(original[0], std::vector<int>{1});
}

// A reference handed out for editing stays part of its own vector, whatever is copied from it and assigned to it later.
TEST(SharedVectorTest, ReferencesForChangingStayWithTheirVector) {
  Items changed = {{1}, {2}};
  std::vector<int>& first = changed[0];
  const Items before = changed;
  first.push_back(7);
  EXPECT_EQ(before.items(), (std::vector<std::vector<int>>{{1}, {2}}));
  EXPECT_EQ(std::as_const(changed)[0], (std::vector<int>{1, 7}));
  changed = before;
  first.push_back(8);
  EXPECT_EQ(std::as_const(changed)[0], (std::vector<int>{1, 8}));
  EXPECT_EQ(before[0], std::vector<int>{1});
  const Items moved = std::move(changed);
  first.push_back(9);
  EXPECT_EQ(moved[0], (std::vector<int>{1, 8, 9}));
}

TEST(SharedVectorTest, EmptyOnesAreEqualAndTakeNothing) {
  const Items none;
  Items grown(2);
  grown.clear();
  EXPECT_EQ(none, grown);
  EXPECT_TRUE(none.begin() == none.end());
  EXPECT_EQ(sizeof(none), sizeof(void*));
}

// Random copies, assignments and changes of five vectors, compared with std::vector.
TEST(SharedVectorTest, DoesWhatVectorsDo) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<Items> shared(5);
    std::vector<std::vector<std::vector<int>>> plain(5);
    for (int step = 0; step < 100; ++step) {
      const std::size_t a = random.below(5), b = random.below(5);
      const int number = static_cast<int>(random.below(100));
      const bool has_items = !plain[a].empty();
      switch (random.below(7)) {
        case 0:
          shared[a] = shared[b];
          plain[a] = plain[b];
          break;
        case 1:
          shared[a].push_back({number});
          plain[a].push_back({number});
          break;
        case 2:
          if (has_items) shared[a].back().push_back(number);
          if (has_items) plain[a].back().push_back(number);
          break;
        case 3:
          for (std::vector<int>& item : shared[a]) item.assign(1, number);
          for (std::vector<int>& item : plain[a]) item.assign(1, number);
          break;
        case 4:
          shared[a].resize(random.below(3));
          plain[a].resize(std::as_const(shared)[a].size());
          break;
        case 5:
          std::swap(shared[a], shared[b]);
          std::swap(plain[a], plain[b]);
          break;
        default:
          if (a != b) shared[a] = std::move(shared[b]);
          if (a != b) plain[a] = std::move(plain[b]);
          break;
      }
      for (std::size_t i = 0; i < plain.size(); ++i) {
        ASSERT_EQ(std::as_const(shared)[i].items(), plain[i]) << "seed " << seed << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
