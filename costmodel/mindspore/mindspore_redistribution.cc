// MindSpore's redistribution, for comparison. A layout becomes a list of tensor pieces (size, device digit or none)
// over a list of device digits. Digits are refined until both ends have the same ones; a piece on a digit that is split
// is split in front too, as blocks of blocks. Pieces are refined by the union of the running products of both shapes;
// where a sharded piece is smaller than its digit, the digit is split in turn. Each round makes something smaller, so
// it terminates.
#include "costmodel/mindspore/mindspore_redistribution.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/integer.h"
#include "layouts/redistribution/greedy_order.h"

namespace shardplan {
namespace {

constexpr std::int64_t kWhole = kNotSharded;

/// A factor of a tensor's shape; `digit` counts the device matrix from the left, kWhole is not sharded.
struct Piece {
  std::int64_t size = 1;
  std::int64_t digit = kWhole;
};

struct Side {
  std::vector<std::int64_t> digits;
  std::vector<Piece> pieces;
};

/// The only entry of a tensor map's dimension; kWhole if it is not sharded.
std::int64_t only_entry(const std::vector<std::int64_t>& entries) {
  SHARDPLAN_CHECK(entries.size() <= 1);
  return entries.empty() ? kWhole : entries[0];
}

/// Without digits and dimensions of 1.
Side side_of(const MindSporeTensorLayout& tensor) {
  Side side;
  std::vector<std::int64_t> kept;  // by position in the matrix
  for (const std::int64_t size : tensor.layout.device_matrix) {
    kept.push_back(size == 1 ? kWhole : static_cast<std::int64_t>(side.digits.size()));
    if (size > 1) side.digits.push_back(size);
  }
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 1) continue;
    const std::int64_t from_right = only_entry(tensor.layout.tensor_map[d]);
    const auto position = static_cast<std::size_t>(static_cast<std::int64_t>(kept.size()) - 1 - from_right);
    side.pieces.push_back({tensor.shape[d], from_right == kWhole ? kWhole : kept[position]});
  }
  return side;
}

/// The running products of a list from the left, for digits, or from the right.
std::set<std::int64_t> running_products(const std::vector<std::int64_t>& sizes, bool from_right) {
  std::set<std::int64_t> products;
  std::int64_t product = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    products.insert(product *= sizes[from_right ? sizes.size() - 1 - i : i]);
  return products;
}

/// The factors between neighbours of the union of two lists' running products, in the lists' own order; nothing if one
/// does not divide the next or the totals differ.
std::optional<std::vector<std::int64_t>> common_factors(const std::vector<std::int64_t>& a,
                                                        const std::vector<std::int64_t>& b, bool from_right) {
  std::set<std::int64_t> products = running_products(a, from_right);
  const std::set<std::int64_t> others = running_products(b, from_right);
  if (products.empty() != others.empty()) return std::nullopt;
  if (!products.empty() && *products.rbegin() != *others.rbegin()) return std::nullopt;
  products.insert(others.begin(), others.end());
  std::vector<std::int64_t> factors;
  std::int64_t before = 1;
  for (const std::int64_t product : products) {
    if (product % before != 0) return std::nullopt;
    factors.push_back(product / before);
    before = product;
  }
  if (from_right) std::reverse(factors.begin(), factors.end());
  return factors;
}

/// Cuts the digits of a side into `factors`, and each piece on a digit that falls apart into as many.
bool refine_digits(Side& side, const std::vector<std::int64_t>& factors) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;  // of factors, by old digit
  std::size_t at = 0;
  for (const std::int64_t digit : side.digits) {
    const std::size_t begin = at;
    for (std::int64_t product = 1; product < digit; ++at) product *= factors[at];
    ranges.emplace_back(begin, at);
  }
  std::vector<Piece> pieces;
  for (const Piece& piece : side.pieces) {
    if (piece.digit == kWhole) {
      pieces.push_back(piece);
      continue;
    }
    const auto [begin, end] = ranges[static_cast<std::size_t>(piece.digit)];
    std::int64_t rest = piece.size;
    for (std::size_t f = begin; f < end; ++f) {
      if (rest % factors[f] != 0) return false;
      const std::int64_t size = f + 1 < end ? factors[f] : rest;
      pieces.push_back({size, static_cast<std::int64_t>(f)});
      rest /= size;
    }
  }
  side.digits = factors;
  side.pieces = std::move(pieces);
  return true;
}

enum class Outcome { kDone, kDigitsChanged, kImpossible };

/// Cuts the pieces of a side into `factors`. A digit stays on the first part of its piece; if that is smaller, the
/// digit is cut into the part and the rest, and the caller starts over.
Outcome refine_pieces(Side& side, const std::vector<std::int64_t>& factors) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (const Piece& piece : side.pieces) {
    const std::int64_t first = factors[at];
    if (piece.digit != kWhole && first < piece.size) {
      const auto position = static_cast<std::size_t>(piece.digit);
      const std::int64_t digit = side.digits[position];
      if (first % digit != 0) {
        if (digit % first != 0) return Outcome::kImpossible;
        std::vector<std::int64_t> digits = side.digits;
        digits[position] = first;
        digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(position) + 1, digit / first);
        return refine_digits(side, digits) ? Outcome::kDigitsChanged : Outcome::kImpossible;
      }
    }
    std::int64_t product = 1;
    for (bool is_first = true; product < piece.size; is_first = false) {
      pieces.push_back({factors[at], is_first ? piece.digit : kWhole});
      product *= factors[at++];
    }
  }
  side.pieces = std::move(pieces);
  return Outcome::kDone;
}

std::vector<std::int64_t> sizes_of(const Side& side) {
  std::vector<std::int64_t> sizes;
  for (const Piece& piece : side.pieces) sizes.push_back(piece.size);
  return sizes;
}

MindSporeTensorLayout layout_of(const Side& side) {
  MindSporeTensorLayout tensor;
  std::vector<std::int64_t> map;
  for (const Piece& piece : side.pieces) {
    tensor.shape.push_back(piece.size);
    map.push_back(piece.digit == kWhole ? kWhole : static_cast<std::int64_t>(side.digits.size()) - 1 - piece.digit);
  }
  tensor.layout = mindspore_layout(side.digits, map);
  return tensor;
}

/// The map with one position for each dimension.
std::vector<std::int64_t> flat_map(const MindSporeLayout& layout) {
  std::vector<std::int64_t> map;
  for (const std::vector<std::int64_t>& entries : layout.tensor_map) map.push_back(only_entry(entries));
  return map;
}

Shape slice_shape(const MindSporeTensorLayout& tensor) {
  const std::vector<std::int64_t>& matrix = tensor.layout.device_matrix;
  Shape slice;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    const std::int64_t from_right = only_entry(tensor.layout.tensor_map[d]);
    const bool is_whole = from_right == kWhole;
    slice.push_back(tensor.shape[d] /
                    (is_whole ? 1 : matrix[matrix.size() - 1 - static_cast<std::size_t>(from_right)]));
  }
  return slice;
}

/// Without dimensions of size 1.
MindSporeTensorLayout squeezed(const MindSporeTensorLayout& tensor) {
  MindSporeTensorLayout result{{tensor.layout.device_matrix, {}}, {}};
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 1) continue;
    result.layout.tensor_map.push_back(tensor.layout.tensor_map[d]);
    result.shape.push_back(tensor.shape[d]);
  }
  return result;
}

/// The same tensor, whole on every device.
MindSporeTensorLayout whole(const MindSporeTensorLayout& tensor) {
  MindSporeTensorLayout result = tensor;
  result.layout.tensor_map.assign(tensor.layout.tensor_map.size(), {});
  return result;
}

}  // namespace

std::int64_t MindSporeTensorLayout::slice_elements() const { return num_elements(slice_shape(*this)); }

std::optional<UnifiedLayouts> unify(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to) {
  Side a = side_of(from);
  Side b = side_of(to);
  while (true) {
    const auto digits = common_factors(a.digits, b.digits, false);
    if (!digits || !refine_digits(a, *digits) || !refine_digits(b, *digits)) return std::nullopt;
    const auto factors = common_factors(sizes_of(a), sizes_of(b), true);
    if (!factors) return std::nullopt;
    bool is_done = true;
    for (Side* side : {&a, &b}) {
      const Outcome outcome = refine_pieces(*side, *factors);
      if (outcome == Outcome::kImpossible) return std::nullopt;
      is_done = is_done && outcome == Outcome::kDone;
    }
    if (is_done && a.digits == b.digits) return UnifiedLayouts{layout_of(a), layout_of(b)};
  }
}

MindSporeRedistributionCost mindspore_edge_cost(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to) {
  constexpr double kGather = 0.5;  // MindSpore's factors of a gather and of an exchange
  constexpr double kExchange = 2;
  const std::optional<UnifiedLayouts> unified = unify(from, to);
  if (!unified) {
    const MindSporeRedistributionCost there = mindspore_edge_cost(from, whole(from));
    const MindSporeRedistributionCost back = mindspore_edge_cost(whole(to), to);
    return {there.forward + back.forward, there.backward + back.backward, there.computation + back.computation,
            there.memory + back.memory};
  }
  MindSporeRedistributionCost cost;
  const double n = static_cast<double>(from.slice_elements());
  const std::vector<std::int64_t>& matrix = unified->from.layout.device_matrix;
  const std::vector<std::int64_t> from_map = flat_map(unified->from.layout);
  const std::vector<std::int64_t> to_map = flat_map(unified->to.layout);
  for (const GreedyMove& move : greedy_order(from_map, to_map)) {
    const bool is_exchange = move.kind == GreedyMove::Kind::kExchange;
    const bool is_gather = move.kind == GreedyMove::Kind::kGather;
    const bool is_first = (is_exchange ? move.from : move.digit) == 0;
    const std::int64_t position = (is_gather ? from_map : to_map)[move.digit];
    const double devices = static_cast<double>(matrix[matrix.size() - 1 - static_cast<std::size_t>(position)]);
    if (is_gather) {
      cost.forward += n * devices * kGather;
      cost.backward += n * kGather;
    } else if (is_exchange) {
      cost.forward += n * kExchange;
      cost.backward += n * kExchange;
    }
    if (is_gather || is_exchange) {
      cost.computation += is_first ? n : n + 2 * n * devices;
      cost.memory += !is_first ? 2 * n * devices + n : is_exchange ? n : n * devices;
    }
    cost.computation += n;
    cost.memory += n;
  }
  if (slice_shape(unified->from) != slice_shape(squeezed(from)) ||
      slice_shape(unified->to) != slice_shape(squeezed(to))) {
    cost.computation += 2 * n;
    cost.memory += 2 * n;
  }
  return cost;
}

}  // namespace shardplan
