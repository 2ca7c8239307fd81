#include "operators/building/matrix_product.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace shardplan {
namespace {

std::vector<double> draw(Random& random, std::int64_t size, bool whole) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(whole ? static_cast<double>(random.below(17)) - 8 : random.unit() * 2 - 1);
  }
  return values;
}

// Integers: any order of addition gives the same sum.
TEST(MatrixProductTest, AddsUpThreeLoops) {
  constexpr std::uint64_t kSeed = 47;
  Random random(kSeed);
  const std::int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 63, 64, 65, 130};
  for (const std::int64_t m : {0, 1, 2, 3, 5}) {
    for (const std::int64_t k : kSizes) {
      for (const std::int64_t n : {0, 1, 3, 511, 512, 513, 1030}) {
        if (k > 5 && n > 3 && (m + k + n) % 3 != 0) continue;
        const std::vector<double> a = draw(random, m * k, true);
        const std::vector<double> b = draw(random, k * n, true);
        std::vector<double> c = draw(random, m * n, true);
        std::vector<double> expected = c;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t r = 0; r < k; ++r) {
            for (std::int64_t j = 0; j < n; ++j) {
              expected[static_cast<std::size_t>(i * n + j)] +=
                  a[static_cast<std::size_t>(i * k + r)] * b[static_cast<std::size_t>(r * n + j)];
            }
          }
        }
        multiply_add(m, n, k, a.data(), b.data(), c.data());
        ASSERT_EQ(c, expected) << m << " x " << k << " x " << n << ", seed " << kSeed;
      }
    }
  }
}

// A device with some of the rows and columns computes exactly the numbers that a single device computes for them.
TEST(MatrixProductTest, ElementsDoNotDependOnTheirNeighbours) {
  constexpr std::uint64_t kSeed = 53;
  Random random(kSeed);
  constexpr std::int64_t m = 7, n = 600, k = 150;
  const std::vector<double> a = draw(random, m * k, false);
  const std::vector<double> b = draw(random, k * n, false);
  std::vector<double> whole(m * n, 0.0);
  multiply_add(m, n, k, a.data(), b.data(), whole.data());
  for (const auto& [row, rows, column, columns] :
       {std::array<std::int64_t, 4>{2, 3, 0, n}, {6, 1, 100, 500}, {0, 4, 37, 1}, {3, 2, 511, 89}}) {
    std::vector<double> part_a, part_b;
    for (std::int64_t i = row; i < row + rows; ++i) {
      for (std::int64_t r = 0; r < k; ++r) part_a.push_back(a[static_cast<std::size_t>(i * k + r)]);
    }
    for (std::int64_t r = 0; r < k; ++r) {
      for (std::int64_t j = column; j < column + columns; ++j) part_b.push_back(b[static_cast<std::size_t>(r * n + j)]);
    }
    std::vector<double> part(static_cast<std::size_t>(rows * columns), 0.0);
    multiply_add(rows, columns, k, part_a.data(), part_b.data(), part.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        ASSERT_EQ(part[static_cast<std::size_t>(i * columns + j)],
                  whole[static_cast<std::size_t>((row + i) * n + column + j)])
            << "seed " << kSeed;
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
