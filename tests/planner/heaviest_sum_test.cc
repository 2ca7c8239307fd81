#include "planner/overlap/heaviest_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace shardplan {
namespace {

std::vector<std::int64_t> random_row(Random& random, std::size_t size, std::uint64_t below) {
  std::vector<std::int64_t> row;
  for (std::size_t i = 0; i < size; ++i) row.push_back(static_cast<std::int64_t>(random.below(below)));
  return row;
}

// Times from picoseconds to days; half of the weights differ from the one before in a few millionths only, so that
// their sums are nearly equal.
TEST(HeaviestSumTest, IsTheLargestOfTheExactSums) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t kernels = random.below(9), items = random.below(9), parts = random.below(3);
    std::vector<OverlapWeights> weights;
    for (std::size_t i = 1 + random.below(12); i > 0; --i) {
      if (!weights.empty() && random.below(2) == 0) {
        weights.push_back(weights.back());
        for (std::int64_t& share : weights.back().kernels) {
          share = std::max<std::int64_t>(0, share - static_cast<std::int64_t>(random.below(3)));
        }
        continue;
      }
      OverlapWeights& one = weights.emplace_back();
      one.kernels = random_row(random, kernels, OverlapWeights::kWhole + 1);
      one.items = random_row(random, items, OverlapWeights::kWhole + 1);
      for (std::size_t part = 0; part < parts; ++part) {
        one.on_part.push_back(random_row(random, items, OverlapWeights::kWhole + 1));
      }
    }
    const HeaviestSum heaviest(weights);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t longest = std::uint64_t{1} << (1 + random.below(56));
      StepBound::Times times{random_row(random, kernels, longest), random_row(random, items, longest), {}};
      for (std::size_t part = 0; part < parts; ++part) times.on_part.push_back(random_row(random, items, longest));
      if (kernels > 0 && random.below(10) == 0) times.kernels[random.below(kernels)] = kForbidden;
      Picoseconds most = 0;
      for (const OverlapWeights& one : weights) most = std::max(most, StepBound::sum(one, times));
      EXPECT_EQ(heaviest.of(times), most);
    }
  }
}

TEST(HeaviestSumTest, IsZeroWithoutWeights) {
  EXPECT_EQ(HeaviestSum().of({{5}, {}, {}}), 0);
  EXPECT_EQ(HeaviestSum(std::vector<OverlapWeights>{}).of({{5}, {}, {}}), 0);
}

}  // namespace
}  // namespace shardplan
