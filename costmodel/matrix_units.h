#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "operators/operation.h"

namespace shardplan {

/// The parts of a device that multiply matrices: `count` of them (108 streaming multiprocessors of an A100), each of
/// which computes one square of `tile` x `tile` elements of the result at a time, over all of k. Beginning and ending a
/// tile takes as long as `fill` more steps of k. A count of 0 says that nothing is known of them.
struct MatrixUnits {
  std::int64_t count = 0;
  std::int64_t tile = 128;
  std::int64_t fill = 0;

  bool operator==(const MatrixUnits&) const = default;
};

/// The matrix product that one device computes: `batch` times [m, k] by [k, n].
struct ProductShape {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;

  bool operator==(const ProductShape&) const = default;
};

/// The product that a contraction of two operands is, by which of its tensors walk a factor: all three are the batch,
/// the first operand and the result m, the second and the result n, both operands k. A convolution is the product that
/// libraries make of it (m: positions, n: channels that come out, k: channels that go in times the window). Nothing for
/// operators of other than two operands and one result.
std::optional<ProductShape> product_shape(const Operation& operation, std::span<const std::int64_t> factor_extents);

/// How much longer the units take than their rate says, in parts per million, at least 1,000,000:
///
///     waves * count * tile^2 * (k / s + fill) / (batch * m * n * k)        waves = ceil(s * tiles / count)
///
/// with the s that takes least: the sum over k may be split among s units, a power of two. [16384, 4096] by [4096, 512]
/// on 108 units of 128: 512 tiles are 4.74 waves that take the time of 5.
/// Source: NVIDIA, Matrix Multiplication Background User's Guide: tile and wave quantisation; Osama et al., Stream-K,
/// PPoPP 2023: split k.
std::int64_t units_overhead_ppm(const ProductShape& shape, const MatrixUnits& units);

}  // namespace shardplan
