#include "costmodel/matrix_units.h"

#include <algorithm>

#include "base/integer.h"

namespace shardplan {
namespace {

constexpr std::int64_t kPartsPerMillion = 1'000'000;
/// Units multiply blocks of this edge; a dimension that is shorter than a tile is padded to a multiple of it.
constexpr std::int64_t kBlock = 8;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

/// The edge of a tile along a dimension of `size`.
std::int64_t edge(std::int64_t size, std::int64_t tile) {
  return size >= tile ? tile : std::min(tile, divided_up(size, kBlock) * kBlock);
}

}  // namespace

std::optional<ProductShape> product_shape(const Operation& operation, std::span<const std::int64_t> factor_extents) {
  const ShardingRule& rule = operation.rule;
  if (rule.operands.size() != 2 || rule.results.size() != 1) return std::nullopt;
  ProductShape shape;
  for (std::uint32_t factor = 0; factor < rule.factors.size(); ++factor) {
    const bool first = walks(rule.operands[0], factor), second = walks(rule.operands[1], factor);
    const bool result = walks(rule.results[0], factor);
    std::int64_t& size = !result ? shape.k : first && second ? shape.batch : first ? shape.m : shape.n;
    size = checked_multiply(size, factor_extents[factor]).value_or(INT64_MAX);
  }
  return shape;
}

std::int64_t units_overhead_ppm(const ProductShape& shape, const MatrixUnits& units) {
  if (units.count == 0) return kPartsPerMillion;
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;  // above this, tiles cost nothing
  if (std::max({shape.batch, shape.m, shape.n, shape.k}) >= kLargest) return kPartsPerMillion;
  const std::int64_t rows = edge(shape.m, units.tile), columns = edge(shape.n, units.tile);
  const Int128 tiles = static_cast<Int128>(shape.batch) * divided_up(shape.m, rows) * divided_up(shape.n, columns);
  const Int128 useful = static_cast<Int128>(shape.batch) * shape.m * shape.n;
  if (useful >= Int128{1} << 90) return kPartsPerMillion;  // more than any device holds; the steps below fit
  Int128 least = 0;
  for (std::int64_t split = 1; split <= units.count && split <= shape.k; split *= 2) {
    const Int128 waves = (tiles * split + units.count - 1) / units.count;
    const Int128 spent = waves * units.count * rows * columns;  // elements of the result that the units have time for
    const std::int64_t depth = divided_up(shape.k, split) + units.fill;
    // spent * depth over useful * k, in two steps that stay within 128 bits.
    const Int128 ratio = (spent * kPartsPerMillion + useful - 1) / useful * depth / shape.k;
    if (least == 0 || ratio < least) least = ratio;
    if (tiles * split >= 8 * units.count) break;  // splitting k can no longer save a tenth
  }
  return std::max<std::int64_t>(kPartsPerMillion, static_cast<std::int64_t>(std::min<Int128>(least, INT64_MAX)));
}

}  // namespace shardplan
