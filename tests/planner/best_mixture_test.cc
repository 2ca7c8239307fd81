#include "planner/overlap/best_mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace shardplan {
namespace {

using Sums = std::vector<std::vector<Picoseconds>>;

/// The least mean over all choices.
double value_of(const Sums& sums, const std::vector<double>& shares) {
  double least = 0;
  for (std::size_t c = 0; c < sums.front().size(); ++c) {
    double mean = 0;
    for (std::size_t j = 0; j < sums.size(); ++j) mean += shares[j] * static_cast<double>(sums[j][c]);
    least = c == 0 ? mean : std::min(least, mean);
  }
  return least;
}

double value_of(const Sums& sums, const std::vector<std::int64_t>& counts) {
  std::vector<double> shares;
  for (const std::int64_t count : counts) {
    EXPECT_GE(count, 0);
    shares.push_back(static_cast<double>(count) / static_cast<double>(kMixtureWhole));
  }
  EXPECT_LE(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), kMixtureWhole);
  return value_of(sums, shares);
}

TEST(BestMixtureTest, OneSumIsBest) {
  EXPECT_EQ(best_mixture({{5, 7}, {3, 4}}).sums, (std::vector<std::int64_t>{kMixtureWhole, 0}));
  EXPECT_EQ(best_mixture({{0, 0}}).sums, (std::vector<std::int64_t>{kMixtureWhole}));
}

TEST(BestMixtureTest, MatchingPennies) {
  const Sums sums = {{2000, 0}, {0, 2000}};
  EXPECT_NEAR(value_of(sums, best_mixture(sums).sums), 1000, 0.01);
}

TEST(BestMixtureTest, NoMeanOfAFineGridIsBetter) {
  Random random(1);
  constexpr int kParts = 20;
  for (int game = 0; game < 200; ++game) {
    Sums sums(3, std::vector<Picoseconds>(1 + random.below(5)));
    for (std::vector<Picoseconds>& row : sums) {
      for (Picoseconds& sum : row) sum = static_cast<Picoseconds>(1 + random.below(1'000'000));
    }
    double best = 0;
    for (int a = 0; a <= kParts; ++a) {
      for (int b = 0; a + b <= kParts; ++b) {
        const auto share = [](int parts) { return static_cast<double>(parts) / kParts; };
        best = std::max(best, value_of(sums, std::vector<double>{share(a), share(b), share(kParts - a - b)}));
      }
    }
    const Mixture mixture = best_mixture(sums);
    EXPECT_GE(value_of(sums, mixture.sums), best - 5);
    // With the other side's mixture no sum exceeds the value.
    Sums transposed(sums.front().size(), std::vector<Picoseconds>(sums.size()));
    for (std::size_t j = 0; j < sums.size(); ++j) {
      for (std::size_t c = 0; c < sums[j].size(); ++c) transposed[c][j] = -sums[j][c];
    }
    EXPECT_NEAR(-value_of(transposed, mixture.choices), value_of(sums, mixture.sums), 10);
  }
}

TEST(RoughMixtureTest, IsNearTheBest) {
  Random random(2);
  for (int game = 0; game < 200; ++game) {
    Sums sums(2 + random.below(4), std::vector<Picoseconds>(1 + random.below(5)));
    for (std::vector<Picoseconds>& row : sums) {
      for (Picoseconds& sum : row) sum = static_cast<Picoseconds>(1 + random.below(1'000'000));
    }
    const std::vector<std::int64_t> counts = rough_mixture(sums);
    const auto turns = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    std::vector<double> shares(counts.begin(), counts.end());
    for (double& share : shares) share /= turns;
    EXPECT_GE(value_of(sums, shares), value_of(sums, best_mixture(sums).sums) - 0.03 * 1'000'000) << game;
  }
}

}  // namespace
}  // namespace shardplan
