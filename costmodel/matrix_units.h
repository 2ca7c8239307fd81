#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "operators/operation.h"

namespace shardplan {

/// The parts of a device that multiply matrices: `count` units (108 streaming multiprocessors of an A100), each of
/// which computes one tile of `tile` x `tile` elements of the result at a time, over all of k. Starting and ending a
/// tile takes as long as `fill` more steps of k. A count of 0 means that nothing is known about them.
struct MatrixUnits {
  std::int64_t count = 0;
  std::int64_t tile = 128;
  std::int64_t fill = 0;

  bool operator==(const MatrixUnits&) const = default;
};

/// The matrix product computed by one device: `batch` times [m, k] by [k, n].
struct ProductShape {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;

  bool operator==(const ProductShape&) const = default;
};

/// The matrix product to which a contraction of two operands is equivalent, by the tensors that have a factor: all
/// three: batch; the first operand and the result: m; the second and the result: n; both operands: k. A convolution
/// is the product that libraries turn it into (m: positions, n: output channels, k: input channels times the window).
/// Nothing for operators without exactly two operands and one result.
std::optional<ProductShape> product_shape(const Operation& operation, std::span<const std::int64_t> factor_extents);

/// The factor by which a product takes longer than at the full rate, in parts per million, at least 1,000,000:
///
///     waves * count * tile^2 * (k / s + fill) / (batch * m * n * k)        waves = ceil(s * tiles / count)
///
/// with the power of two s that minimises it: the sum over k may be split among s units. [16384, 4096] by [4096, 512]
/// on 108 units of 128: 512 tiles are 4.74 waves, which take the time of 5.
/// Source: NVIDIA, Matrix Multiplication Background User's Guide: tile and wave quantisation; Osama et al., Stream-K,
/// PPoPP 2023: split k.
std::int64_t units_overhead_ppm(const ProductShape& shape, const MatrixUnits& units);

}  // namespace shardplan
