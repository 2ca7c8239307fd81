#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// The hot loops, compiled several times (base/vector_code.h). Matrices are row-major.

/// out[c] = min over r of in[r] + matrix[r][c]; infinity if there are no rows.
void min_plus(const double* in, std::size_t rows, const double* matrix, std::size_t columns, double* __restrict out);

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

}  // namespace shardplan
