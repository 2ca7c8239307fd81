#pragma once

#include <cstdint>

namespace shardplan {

/// c[m, n] += a[m, k] * b[k, n], all row-major without gaps. Each element of c adds its products in the order of k, four
/// at a time, whatever the sizes of m and n, so the numbers are the same on any machine.
void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c);

}  // namespace shardplan
