#pragma once

#include <cstdint>
#include <optional>

namespace shardplan {

__extension__ using Int128 = __int128;  // 128 bits are an extension of the compilers we use
__extension__ using UnsignedInt128 = unsigned __int128;

/// The exact product or sum, or nothing if it does not fit in 64 bits.
inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}
inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a * b / c rounded up, with a 128-bit product; requires a, b >= 0, c > 0; saturates at the largest value on overflow.
inline std::int64_t multiply_divide(std::int64_t a, std::int64_t b, std::int64_t c) {
  const Int128 quotient = (static_cast<Int128>(a) * b + (c - 1)) / c;
  return quotient > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(quotient);
}

}  // namespace shardplan
