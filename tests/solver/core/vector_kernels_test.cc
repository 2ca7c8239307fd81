#include "solver/core/vector_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace shardplan {
namespace {

std::vector<double> random_numbers(Random& random, std::size_t count) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = random.unit() * 1000;
  return numbers;
}

TEST(VectorKernelsTest, MinPlusIsTheLeastSumOverTheRows) {
  Random random(1);
  // All remainders of rows by the four that are taken at a time, and of columns by a vector's width.
  for (std::size_t rows = 0; rows < 10; ++rows) {
    for (std::size_t columns = 1; columns < 10; ++columns) {
      const std::vector<double> in = random_numbers(random, rows);
      const std::vector<double> matrix = random_numbers(random, rows * columns);
      std::vector<double> out(columns);
      min_plus(in.data(), rows, matrix.data(), columns, out.data());
      for (std::size_t c = 0; c < columns; ++c) {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t r = 0; r < rows; ++r) least = std::min(least, in[r] + matrix[r * columns + c]);
        EXPECT_EQ(out[c], least) << rows << " x " << columns;
      }
    }
  }
}

TEST(VectorKernelsTest, FloatsAreTheLargestThatAreNotAbove) {
  Random random(11);
  std::vector<double> items = random_numbers(random, 1000);
  for (double& item : items) item *= item * item;  // up to 2^30
  for (const double item : {0.0, 1.0, 0x1p24 + 1, 0x1p53 - 1, 0x1p60, 0x1.fffffffffffffp99}) items.push_back(item);
  std::vector<float> floats(items.size());
  round_down(items.data(), items.size(), floats.data());
  int num_rounded = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_LE(static_cast<double>(floats[i]), items[i]);
    EXPECT_GT(static_cast<double>(std::nextafter(floats[i], std::numeric_limits<float>::infinity())), items[i]);
    num_rounded += static_cast<double>(floats[i]) < items[i];
  }
  EXPECT_GT(num_rounded, 900);
  // With them, sums are those of doubles.
  const std::vector<double> widened(floats.begin(), floats.end());
  const std::vector<double> in = random_numbers(random, 9);
  std::vector<double> out(111), expected(111);
  min_plus(in.data(), 9, floats.data(), 111, out.data());
  min_plus(in.data(), 9, widened.data(), 111, expected.data());
  EXPECT_EQ(out, expected);
}

TEST(VectorKernelsTest, HalvesAreTheLargestThatAreNotAbove) {
  Random random(12);
  std::vector<double> items = random_numbers(random, 1000);
  for (double& item : items) item *= item * item;
  for (const double item : {0.0, 1e-9, 1.0, 2049.0, 0x1.fffffffffffffp30}) items.push_back(item);
  constexpr double kScale = kHalvesEnd / 0x1p31;
  std::vector<Half> halves(items.size());
  round_down(items.data(), items.size(), kScale, halves.data());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto half = static_cast<double>(float_of(halves[i]));
    EXPECT_LE(half, items[i] * kScale);
    const double next =
        halves[i] == 0xffff ? kHalvesEnd : static_cast<double>(float_of(static_cast<Half>(halves[i] + 1)));
    EXPECT_GT(next, items[i] * kScale);
    EXPECT_GE(half, items[i] < 2 ? 0 : items[i] * kScale * (1 - 0x1p-11));
  }
  std::vector<float> in(9), out(111);
  for (float& item : in) item = static_cast<float>(random.unit() * kHalvesEnd);
  min_plus(in.data(), 9, halves.data(), 111, out.data());
  for (std::size_t c = 0; c < 111; ++c) {
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t r = 0; r < 9; ++r) least = std::min(least, in[r] + float_of(halves[r * 111 + c]));
    EXPECT_EQ(out[c], least);
  }
}

TEST(VectorKernelsTest, GatherAddAddsThePickedEntries) {
  Random random(2);
  for (std::size_t count = 0; count < 20; ++count) {
    const std::vector<double> table = random_numbers(random, 7);
    std::vector<std::uint32_t> at(count);
    for (std::uint32_t& item : at) item = static_cast<std::uint32_t>(random.below(table.size()));
    const std::vector<double> before = random_numbers(random, count);
    std::vector<double> sums = before;
    gather_add(table.data(), at.data(), count, sums.data());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sums[i], before[i] + table[at[i]]);
  }
}

std::vector<std::int64_t> random_integers(Random& random, std::size_t count) {
  std::vector<std::int64_t> integers(count);
  for (std::int64_t& integer : integers) integer = static_cast<std::int64_t>(random.below(1000)) - 500;
  return integers;
}

TEST(VectorKernelsTest, LowerToSumsTakesTheSmallerOfSumAndEntry) {
  Random random(4);
  for (std::size_t count = 0; count < 20; ++count) {
    const std::vector<std::int64_t> row = random_integers(random, count);
    const std::vector<std::int64_t> before = random_integers(random, count);
    std::vector<std::int64_t> out = before;
    lower_to_sums(17, row.data(), count, out.data());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], std::min(before[i], 17 + row[i]));
  }
}

TEST(VectorKernelsTest, TakeExcessLeavesWhatIsAboveTheLeastAndNoLessThanMinusOne) {
  const std::vector<std::int64_t> entries = {7, 9, 12, 5, 13, 7, 100, 8, 10};
  std::vector<std::int64_t> left = {3, 3, 5, 3, 5, -1, 3, 0, -1};
  take_excess(entries.data(), 7, entries.size(), left.data());
  EXPECT_EQ(left, (std::vector<std::int64_t>{3, 1, 0, 3, -1, -1, -1, -1, -1}));
}

TEST(VectorKernelsTest, LargestExcessIsOverWhatIsLessThanTheMost) {
  Random random(5);
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<std::int64_t> entries, others;
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      entries.push_back(static_cast<std::int64_t>(random.below(1000)));
      others.push_back(static_cast<std::int64_t>(random.below(1000)));
      if (others[i] < 500) largest = std::max(largest, entries[i] - others[i]);
    }
    EXPECT_EQ(largest_excess(entries.data(), others.data(), 500, count), largest);
  }
}

TEST(VectorKernelsTest, LeastAndLargestOfManyCounts) {
  Random random(6);
  for (std::size_t count = 1; count < 40; ++count) {
    const std::vector<std::int64_t> items = random_integers(random, count);
    EXPECT_EQ(least_of(items.data(), count), *std::ranges::min_element(items));
    std::int64_t largest = 0;
    for (const std::int64_t item : items) {
      if (item < 300) largest = std::max(largest, item);
    }
    EXPECT_EQ(largest_below(items.data(), 300, count), largest);
  }
}

TEST(VectorKernelsTest, TheFirstZeroIsFoundAtEveryPlace) {
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<std::int64_t> items(count, 7);
    EXPECT_EQ(first_zero(items.data(), count), count);
    for (std::size_t at = count; at-- > 0;) {  // zeros behind the first one do not count
      items[at] = 0;
      EXPECT_EQ(first_zero(items.data(), count), at);
    }
  }
}

TEST(VectorKernelsTest, MultiplyForbidsWhatIsAboveTheMost) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 60;
  const std::vector<std::int64_t> items = {0, 1, 2, 3, 4, kLarge, 3, 0, 5};
  std::vector<std::int64_t> out(items.size());
  multiply(items.data(), 1000, 3, kLarge, items.size(), out.data());
  EXPECT_EQ(out, (std::vector<std::int64_t>{0, 1000, 2000, 3000, kLarge, kLarge, 3000, 0, kLarge}));
}

TEST(VectorKernelsTest, RowsWithForbiddenEntriesAreShifted) {
  Random random(7);
  for (std::size_t count = 0; count < 20; ++count) {
    const std::vector<std::int64_t> row = random_integers(random, count), other = random_integers(random, count);
    std::vector<std::int64_t> least = other, shifted = row, counts = other;
    lower_to_differences(row.data(), 17, 300, count, least.data());
    subtract(17, other.data(), 300, count, shifted.data());
    const auto is_below = [](std::int64_t item) { return item < 300; };
    EXPECT_EQ(count_below(row.data(), 300, count, counts.data()), std::ranges::count_if(row, is_below));
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_allowed = is_below(row[i]);
      EXPECT_EQ(least[i], std::min(other[i], is_allowed ? row[i] - 17 : 300));
      EXPECT_EQ(shifted[i], is_allowed ? row[i] - 17 - other[i] : row[i]);
      EXPECT_EQ(counts[i], other[i] + (is_allowed ? 1 : 0));
    }
  }
}

TEST(VectorKernelsTest, TransposeOfBlocksAndTheirRests) {
  Random random(8);
  for (const std::size_t rows : {0, 1, 15, 16, 33}) {
    for (const std::size_t columns : {1, 7, 16, 17, 40}) {
      const std::vector<std::int64_t> matrix = random_integers(random, rows * columns);
      std::vector<std::int64_t> out(matrix.size());
      transpose(matrix.data(), rows, columns, out.data());
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
          EXPECT_EQ(out[column * rows + row], matrix[row * columns + column]);
        }
      }
    }
  }
}

TEST(VectorKernelsTest, ColumnMinimaAreTheLeastOfEachColumn) {
  Random random(3);
  for (std::size_t rows = 1; rows < 8; ++rows) {
    for (std::size_t columns = 1; columns < 10; ++columns) {
      const std::vector<double> entries = random_numbers(random, rows * columns);
      std::vector<double> out(columns);
      column_minima(entries.data(), rows, columns, out.data());
      for (std::size_t c = 0; c < columns; ++c) {
        double least = entries[c];
        for (std::size_t r = 1; r < rows; ++r) least = std::min(least, entries[r * columns + c]);
        EXPECT_EQ(out[c], least);
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
