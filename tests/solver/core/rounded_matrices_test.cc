#include "solver/core/rounded_matrices.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"

namespace shardplan {
namespace {

std::shared_ptr<std::vector<CoreMatrix>> random_matrices(Random& random, double largest) {
  auto matrices = std::make_shared<std::vector<CoreMatrix>>(20);
  for (CoreMatrix& matrix : *matrices) {
    matrix.row_classes = 3;
    matrix.column_classes = 7;
    for (int i = 0; i < 21; ++i) matrix.forward.push_back(largest * random.unit() * random.unit() * random.unit());
    matrix.backward.assign(matrix.forward.rbegin(), matrix.forward.rend());
    matrix.largest = *std::max_element(matrix.forward.begin(), matrix.forward.end());
  }
  return matrices;
}

TEST(RoundedMatricesTest, AreLessByNoMoreThanTheyClaim) {
  Random random(1);
  for (const double scale : {0.25, 1.0, 1000.0, 0x1p40, 0x1p60}) {
    const auto matrices = random_matrices(random, scale);
    const RoundedMatrices rounded(matrices);
    double largest = 0;
    for (const CoreMatrix& matrix : *matrices) largest = std::max(largest, matrix.largest);
    largest = std::max(largest, 1.0);
    const auto expect_near = [&](const std::vector<double>& entries, const std::vector<float>& floats,
                                 const std::vector<Half>& halves) {
      ASSERT_EQ(floats.size(), entries.size());
      ASSERT_EQ(halves.size(), entries.size());
      for (std::size_t i = 0; i < entries.size(); ++i) {
        EXPECT_LE(floats[i], entries[i]);
        EXPECT_GE(floats[i], entries[i] * (1 - 0x1p-23));
        const double half = rounded.unit_of_halves() * float_of(halves[i]);
        EXPECT_LE(half, entries[i]);
        EXPECT_GE(half, entries[i] * (1 - 0x1p-11) - 0x1p-41 * largest);
      }
    };
    for (std::size_t i = 0; i < matrices->size(); ++i) {
      expect_near((*matrices)[i].forward, rounded.floats()[i].forward, rounded.halves()[i].forward);
      expect_near((*matrices)[i].backward, rounded.floats()[i].backward, rounded.halves()[i].backward);
    }
  }
}

TEST(RoundedMatricesTest, AreMadeOnceForAllThreads) {
  Random random(2);
  const RoundedMatrices rounded(random_matrices(random, 1e9));
  const std::vector<RoundedMatrix<Half>>* seen[2] = {};
  {
    const std::jthread other([&] { seen[1] = &rounded.halves(); });
    seen[0] = &rounded.halves();
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0]->size(), 20u);
}

}  // namespace
}  // namespace shardplan
