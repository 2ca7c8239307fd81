#include "solver/core/vector_kernels.h"

#include <limits>

#include "base/vector_code.h"

namespace shardplan {

// Four rows at a time, so that `out` is read and written less often.
SHARDPLAN_VECTOR_CODE void min_plus(const double* in, std::size_t rows, const double* matrix, std::size_t columns,
                                    double* __restrict out) {
  for (std::size_t c = 0; c < columns; ++c) out[c] = std::numeric_limits<double>::infinity();
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const double in0 = in[r], in1 = in[r + 1], in2 = in[r + 2], in3 = in[r + 3];
    const double* const row0 = matrix + r * columns;
    const double* const row1 = row0 + columns;
    const double* const row2 = row1 + columns;
    const double* const row3 = row2 + columns;
    for (std::size_t c = 0; c < columns; ++c) {
      const double sum0 = in0 + row0[c], sum1 = in1 + row1[c], sum2 = in2 + row2[c], sum3 = in3 + row3[c];
      const double least01 = sum1 < sum0 ? sum1 : sum0;
      const double least23 = sum3 < sum2 ? sum3 : sum2;
      const double least = least23 < least01 ? least23 : least01;
      out[c] = least < out[c] ? least : out[c];
    }
  }
  for (; r < rows; ++r) {
    const double first = in[r];
    const double* const row = matrix + r * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      const double sum = first + row[c];
      out[c] = sum < out[c] ? sum : out[c];
    }
  }
}

SHARDPLAN_VECTOR_CODE void gather_add(const double* table, const std::uint32_t* at, std::size_t count,
                                      double* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += table[at[i]];
}

SHARDPLAN_VECTOR_CODE void column_minima(const double* entries, std::size_t rows, std::size_t columns,
                                         double* __restrict out) {
  for (std::size_t c = 0; c < columns; ++c) out[c] = entries[c];
  for (std::size_t r = 1; r < rows; ++r) {
    const double* const row = entries + r * columns;
    for (std::size_t c = 0; c < columns; ++c) out[c] = row[c] < out[c] ? row[c] : out[c];
  }
}

SHARDPLAN_VECTOR_CODE void lower_to_sums(std::int64_t first, const std::int64_t* row, std::size_t count,
                                         std::int64_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sum = first + row[i];
    out[i] = sum < out[i] ? sum : out[i];
  }
}

SHARDPLAN_VECTOR_CODE void take_excess(const std::int64_t* entries, std::int64_t least, std::size_t count,
                                       std::int64_t* __restrict left) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t excess = entries[i] > least ? entries[i] - least : 0;
    const std::int64_t rest = left[i] - excess;
    left[i] = rest < -1 ? -1 : rest;
  }
}

SHARDPLAN_VECTOR_CODE std::int64_t largest_excess(const std::int64_t* entries, const std::int64_t* others,
                                                  std::int64_t most, std::size_t count) {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t excess = others[i] < most ? entries[i] - others[i] : 0;
    largest = excess > largest ? excess : largest;
  }
  return largest;
}

}  // namespace shardplan
