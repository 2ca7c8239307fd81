#include "planner/overlap/least_cover.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace shardplan {
namespace {

/// A communication and a kernel that it may overlap with.
bool is_covered(const std::vector<Hideable>& communications, const Cover& cover) {
  for (std::size_t i = 0; i < communications.size(); ++i) {
    for (std::size_t op = 0; op < cover.kernels.size(); ++op) {
      const bool may = communications[i].beside.contains(OperatorId(op));
      if (may && cover.communications[i] == 0 && cover.kernels[op] == 0) return false;
    }
  }
  return true;
}

Picoseconds time_of(const std::vector<Hideable>& communications, const std::vector<Picoseconds>& kernels,
                    const Cover& cover) {
  Picoseconds sum = 0;
  for (std::size_t i = 0; i < communications.size(); ++i) sum += cover.communications[i] ? communications[i].time : 0;
  for (std::size_t op = 0; op < kernels.size(); ++op) sum += cover.kernels[op] ? kernels[op] : 0;
  return sum;
}

TEST(LeastCoverTest, IsTheLeastOfAllCovers) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    std::vector<Hideable> communications(random.below(6));
    std::vector<Picoseconds> kernels(1 + random.below(6));
    for (Picoseconds& time : kernels) time = static_cast<Picoseconds>(random.below(5));
    for (Hideable& one : communications) {
      one.time = static_cast<Picoseconds>(random.below(9));
      one.beside = OperatorSet(kernels.size());
      for (std::size_t op = 0; op < kernels.size(); ++op) {
        if (random.below(2) == 0) one.beside.insert(OperatorId(op));
      }
    }
    Picoseconds least = std::numeric_limits<Picoseconds>::max();
    const std::size_t bits = communications.size() + kernels.size();
    for (std::size_t subset = 0; subset < std::size_t{1} << bits; ++subset) {
      Cover cover;
      for (std::size_t i = 0; i < bits; ++i) {
        (i < communications.size() ? cover.communications : cover.kernels).push_back((subset >> i & 1) != 0);
      }
      if (is_covered(communications, cover)) least = std::min(least, time_of(communications, kernels, cover));
    }
    const Cover cover = least_cover(communications, kernels);
    EXPECT_TRUE(is_covered(communications, cover)) << seed;
    EXPECT_EQ(time_of(communications, kernels, cover), least) << seed;
  }
}

TEST(LeastCoverTest, WhatTakesNoTimeIsLeftOutWhereItsKernelsAreIn) {
  OperatorSet first(2), both(2);
  first.insert(OperatorId(0));
  both.insert(OperatorId(0));
  both.insert(OperatorId(1));
  // The kernel takes less time than what it may overlap with: it is the cover. The second communication takes no time
  // here, but may under other strategies; next to kernel 0 alone it is covered, next to both it is not.
  const std::vector<Hideable> communications = {{9, first}, {0, first}, {0, both}};
  const Cover cover = least_cover(communications, {5, 5});
  EXPECT_EQ(cover.kernels, (std::vector<char>{1, 0}));
  EXPECT_EQ(cover.communications, (std::vector<char>{0, 0, 1}));
}

}  // namespace
}  // namespace shardplan
