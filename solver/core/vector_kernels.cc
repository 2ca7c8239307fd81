#include "solver/core/vector_kernels.h"

#include <bit>
#include <limits>

#include "base/vector_code.h"

namespace shardplan {

namespace {

inline double number(double entry) { return entry; }
inline double number(float entry) { return entry; }
inline float number(Half entry) { return float_of(entry); }

// Four rows at a time, so that `out` is read and written less often.
template <class Entry, class Sum>
[[gnu::always_inline]] inline void min_plus_of(const Sum* in, std::size_t rows, const Entry* matrix,
                                               std::size_t columns, Sum* __restrict out) {
  for (std::size_t c = 0; c < columns; ++c) out[c] = std::numeric_limits<Sum>::infinity();
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const Sum in0 = in[r], in1 = in[r + 1], in2 = in[r + 2], in3 = in[r + 3];
    const Entry* const row0 = matrix + r * columns;
    const Entry* const row1 = row0 + columns;
    const Entry* const row2 = row1 + columns;
    const Entry* const row3 = row2 + columns;
    for (std::size_t c = 0; c < columns; ++c) {
      const Sum sum0 = in0 + number(row0[c]), sum1 = in1 + number(row1[c]);
      const Sum sum2 = in2 + number(row2[c]), sum3 = in3 + number(row3[c]);
      const Sum least01 = sum1 < sum0 ? sum1 : sum0;
      const Sum least23 = sum3 < sum2 ? sum3 : sum2;
      const Sum least = least23 < least01 ? least23 : least01;
      out[c] = least < out[c] ? least : out[c];
    }
  }
  for (; r < rows; ++r) {
    const Sum first = in[r];
    const Entry* const row = matrix + r * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      const Sum sum = first + number(row[c]);
      out[c] = sum < out[c] ? sum : out[c];
    }
  }
}

/// The bits of the largest float that is not above an item. Those of floats that are not negative, read as an integer, are
/// in the order of the floats.
[[gnu::always_inline]] inline std::int32_t bits_below(double item) {
  const float nearest = static_cast<float>(item);
  const std::int32_t bits = std::bit_cast<std::int32_t>(nearest);
  return static_cast<double>(nearest) > item ? bits - 1 : bits;
}

}  // namespace

SHARDPLAN_VECTOR_CODE void min_plus(const double* in, std::size_t rows, const double* matrix, std::size_t columns,
                                    double* __restrict out) {
  min_plus_of(in, rows, matrix, columns, out);
}
SHARDPLAN_VECTOR_CODE void min_plus(const double* in, std::size_t rows, const float* matrix, std::size_t columns,
                                    double* __restrict out) {
  min_plus_of(in, rows, matrix, columns, out);
}

SHARDPLAN_VECTOR_CODE void min_plus(const float* in, std::size_t rows, const Half* matrix, std::size_t columns,
                                    float* __restrict out) {
  min_plus_of(in, rows, matrix, columns, out);
}

SHARDPLAN_VECTOR_CODE void round_down(const double* items, std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(bits_below(items[i]));
}
SHARDPLAN_VECTOR_CODE void round_down(const double* items, std::size_t count, double scale, Half* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Half>(bits_below(items[i] * scale) >> 12);
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

SHARDPLAN_VECTOR_CODE std::int64_t least_of(const std::int64_t* items, std::size_t count) {
  std::int64_t least = items[0];
  for (std::size_t i = 1; i < count; ++i) least = items[i] < least ? items[i] : least;
  return least;
}

SHARDPLAN_VECTOR_CODE std::int64_t largest_below(const std::int64_t* items, std::int64_t most, std::size_t count) {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t item = items[i] < most ? items[i] : 0;
    largest = item > largest ? item : largest;
  }
  return largest;
}

// Whether there is one is seen for several items at once.
SHARDPLAN_VECTOR_CODE std::size_t first_zero(const std::int64_t* items, std::size_t count) {
  constexpr std::size_t kTogether = 16;
  std::size_t at = 0;
  for (; at + kTogether <= count; at += kTogether) {
    std::int64_t zeros = 0;
    for (std::size_t i = 0; i < kTogether; ++i) zeros |= items[at + i] == 0 ? -1 : 0;
    if (zeros != 0) break;
  }
  while (at < count && items[at] != 0) ++at;
  return at;
}

SHARDPLAN_VECTOR_CODE void multiply(const std::int64_t* items, std::int64_t factor, std::int64_t most,
                                    std::int64_t forbidden, std::size_t count, std::int64_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t allowed = items[i] <= most ? items[i] : 0;  // products of others might not fit
    out[i] = items[i] <= most ? allowed * factor : forbidden;
  }
}

SHARDPLAN_VECTOR_CODE void lower_to_differences(const std::int64_t* row, std::int64_t shift, std::int64_t forbidden,
                                                std::size_t count, std::int64_t* __restrict least) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t difference = row[i] < forbidden ? row[i] - shift : forbidden;
    least[i] = difference < least[i] ? difference : least[i];
  }
}

SHARDPLAN_VECTOR_CODE void subtract(std::int64_t shift, const std::int64_t* shifts, std::int64_t forbidden,
                                    std::size_t count, std::int64_t* __restrict row) {
  for (std::size_t i = 0; i < count; ++i) row[i] -= row[i] < forbidden ? shift + shifts[i] : 0;
}

SHARDPLAN_VECTOR_CODE std::int64_t count_below(const std::int64_t* row, std::int64_t forbidden, std::size_t count,
                                               std::int64_t* __restrict counts) {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t is_below = row[i] < forbidden ? 1 : 0;
    counts[i] += is_below;
    all += is_below;
  }
  return all;
}

// In square blocks, so that the lines written to stay in the cache.
SHARDPLAN_VECTOR_CODE void transpose(const std::int64_t* matrix, std::size_t rows, std::size_t columns,
                                     std::int64_t* __restrict out) {
  constexpr std::size_t kBlock = 16;
  for (std::size_t first_row = 0; first_row < rows; first_row += kBlock) {
    const std::size_t end_row = first_row + kBlock < rows ? first_row + kBlock : rows;
    for (std::size_t first_column = 0; first_column < columns; first_column += kBlock) {
      const std::size_t end_column = first_column + kBlock < columns ? first_column + kBlock : columns;
      for (std::size_t column = first_column; column < end_column; ++column) {
        for (std::size_t row = first_row; row < end_row; ++row) {
          out[column * rows + row] = matrix[row * columns + column];
        }
      }
    }
  }
}

}  // namespace shardplan
