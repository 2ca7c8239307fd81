#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace shardplan {

/// The hot loops, compiled several times (base/vector_code.h). Matrices are row-major.

/// A small float that is not negative, without what it has too much: five bits of its exponent and eleven of its fraction.
using Half = std::uint16_t;
/// Above all halves.
inline constexpr double kHalvesEnd = 0x1p-95;
inline float float_of(Half half) { return std::bit_cast<float>(std::uint32_t{half} << 12); }

/// out[c] = min over r of in[r] + matrix[r][c]; infinity if there are no rows.
void min_plus(const double* in, std::size_t rows, const double* matrix, std::size_t columns, double* __restrict out);
void min_plus(const double* in, std::size_t rows, const float* matrix, std::size_t columns, double* __restrict out);
/// Sums are rounded, by at most 2^-24 of themselves.
void min_plus(const float* in, std::size_t rows, const Half* matrix, std::size_t columns, float* __restrict out);

/// out[i] is the largest float that is not above items[i]. Requires items from 0 to 2^100.
void round_down(const double* items, std::size_t count, float* __restrict out);
/// The same for halves and items[i] * scale, where the scale is a power of two. Requires items that are below kHalvesEnd
/// then.
void round_down(const double* items, std::size_t count, double scale, Half* __restrict out);

/// sums[i] += table[at[i]]
void gather_add(const double* table, const std::uint32_t* at, std::size_t count, double* __restrict sums);

/// out[c] = min over r of entries[r][c]. Requires at least one row.
void column_minima(const double* entries, std::size_t rows, std::size_t columns, double* __restrict out);

/// out[i] = min(out[i], first + row[i])
void lower_to_sums(std::int64_t first, const std::int64_t* row, std::size_t count, std::int64_t* __restrict out);

/// left[i] -= entries[i] - least where that is positive, but to no less than -1
void take_excess(const std::int64_t* entries, std::int64_t least, std::size_t count, std::int64_t* __restrict left);

/// The most by which an entry is above the other one, where the other one is less than `most`; at least zero.
std::int64_t largest_excess(const std::int64_t* entries, const std::int64_t* others, std::int64_t most,
                            std::size_t count);

/// The least item. Requires at least one.
std::int64_t least_of(const std::int64_t* items, std::size_t count);

/// The largest item that is less than `most`; at least zero.
std::int64_t largest_below(const std::int64_t* items, std::int64_t most, std::size_t count);

/// The position of the first zero, or `count`.
std::size_t first_zero(const std::int64_t* items, std::size_t count);

/// out[i] = items[i] * factor where items[i] is at most `most`, else `forbidden`
void multiply(const std::int64_t* items, std::int64_t factor, std::int64_t most, std::int64_t forbidden,
              std::size_t count, std::int64_t* __restrict out);

/// least[i] = min(least[i], row[i] - shift) where row[i] is less than `forbidden`
void lower_to_differences(const std::int64_t* row, std::int64_t shift, std::int64_t forbidden, std::size_t count,
                          std::int64_t* __restrict least);

/// row[i] -= shift + shifts[i] where row[i] is less than `forbidden`
void subtract(std::int64_t shift, const std::int64_t* shifts, std::int64_t forbidden, std::size_t count,
              std::int64_t* __restrict row);

/// counts[i] += 1 where row[i] is less than `forbidden`. Returns how often that is so.
std::int64_t count_below(const std::int64_t* row, std::int64_t forbidden, std::size_t count,
                         std::int64_t* __restrict counts);

/// out[c][r] = matrix[r][c]
void transpose(const std::int64_t* matrix, std::size_t rows, std::size_t columns, std::int64_t* __restrict out);

}  // namespace shardplan
