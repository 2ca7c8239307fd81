#include "operators/building/matrix_product.h"

#include <algorithm>

namespace shardplan {
namespace {

// A block of b stays in the second-level cache while all rows of a pass over it.
constexpr std::int64_t kBlockColumns = 512;
constexpr std::int64_t kBlockDepth = 64;

/// Two rows of c and four rows of b at a time: one store per four products.
void multiply_block(std::int64_t m, std::int64_t n, std::int64_t columns, std::int64_t k, std::int64_t depth,
                    const double* a, const double* b, double* c) {
  std::int64_t i = 0;
  for (; i + 2 <= m; i += 2) {
    const double* a0 = a + i * k;
    const double* a1 = a0 + k;
    double* __restrict c0 = c + i * n;
    double* __restrict c1 = c0 + n;
    std::int64_t r = 0;
    for (; r + 4 <= depth; r += 4) {
      const double* b0 = b + r * n;
      const double* b1 = b0 + n;
      const double* b2 = b1 + n;
      const double* b3 = b2 + n;
      for (std::int64_t j = 0; j < columns; ++j) {
        c0[j] += a0[r] * b0[j] + a0[r + 1] * b1[j] + a0[r + 2] * b2[j] + a0[r + 3] * b3[j];
        c1[j] += a1[r] * b0[j] + a1[r + 1] * b1[j] + a1[r + 2] * b2[j] + a1[r + 3] * b3[j];
      }
    }
    for (; r < depth; ++r) {
      const double* b0 = b + r * n;
      for (std::int64_t j = 0; j < columns; ++j) {
        c0[j] += a0[r] * b0[j];
        c1[j] += a1[r] * b0[j];
      }
    }
  }
  for (; i < m; ++i) {
    const double* a0 = a + i * k;
    double* __restrict c0 = c + i * n;
    std::int64_t r = 0;
    for (; r + 4 <= depth; r += 4) {
      const double* b0 = b + r * n;
      for (std::int64_t j = 0; j < columns; ++j) {
        c0[j] += a0[r] * b0[j] + a0[r + 1] * b0[n + j] + a0[r + 2] * b0[2 * n + j] + a0[r + 3] * b0[3 * n + j];
      }
    }
    for (; r < depth; ++r) {
      const double* b0 = b + r * n;
      for (std::int64_t j = 0; j < columns; ++j) c0[j] += a0[r] * b0[j];
    }
  }
}

}  // namespace

void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c) {
  for (std::int64_t column = 0; column < n; column += kBlockColumns) {
    const std::int64_t columns = std::min(kBlockColumns, n - column);
    for (std::int64_t r = 0; r < k; r += kBlockDepth) {
      multiply_block(m, n, columns, k, std::min(kBlockDepth, k - r), a + r, b + r * n + column, c + column);
    }
  }
}

}  // namespace shardplan
