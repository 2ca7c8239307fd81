#include "layouts/redistribution/search/layout_space.h"

#include <algorithm>
#include <map>

#include "layouts/index_digits.h"

namespace shardplan {
namespace {

/// The pieces that an axis consists of, in order; empty if it is no union of consecutive pieces.
std::vector<std::size_t> pieces_of(const AxisRef& axis, const std::vector<AxisRef>& pieces) {
  std::vector<std::size_t> result;
  std::int64_t at = axis.before;
  const std::int64_t end = axis.end();
  for (std::size_t i = 0; i < pieces.size() && at < end; ++i) {
    if (pieces[i].axis != axis.axis || pieces[i].before != at) continue;
    result.push_back(i);
    at *= pieces[i].size;
  }
  if (at != end) result.clear();
  return result;
}

}  // namespace

std::optional<Placement> LayoutSpace::encode(const TensorLayout& layout, const Shape& shape) const {
  Placement placement;
  std::size_t slot = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<IndexDigit> digits = index_digits(layout.dimensions[d], shape[d]);
    while (slot < slots.size() && slots[slot].dimension < d) ++slot;
    const auto is_sharded = [](const IndexDigit& digit) { return digit.axis.has_value(); };
    if (std::none_of(digits.begin(), digits.end(), is_sharded)) continue;
    if (slot == slots.size() || slots[slot].dimension != d) return std::nullopt;
    std::size_t at = slot;
    std::size_t order = 0;
    std::int64_t left = shape[d];                                       // after the slots before this one
    std::int64_t room = slots[at].continues ? slots[at].extent : left;  // in this slot, not yet taken
    bool rest_begun = false;                                            // the unsharded digit of this slot
    const auto next_slot_if_full = [&] {
      if (room > 1 || !slots[at].continues) return;
      left /= slots[at].extent;
      ++at;
      order = 0;
      room = slots[at].continues ? slots[at].extent : left;
      rest_begun = false;
    };
    for (const IndexDigit& digit : digits) {
      if (digit.axis) {
        const std::vector<std::size_t> axis_pieces = pieces_of(*digit.axis, pieces);
        if (axis_pieces.empty()) return std::nullopt;
        for (const std::size_t piece : axis_pieces) {
          next_slot_if_full();
          if (rest_begun || room % pieces[piece].size != 0) return std::nullopt;
          placement.positions[piece] = Placement::in_slot(at, order++);
          room /= pieces[piece].size;
        }
      } else {
        for (std::int64_t rest = digit.size; rest > 1;) {
          next_slot_if_full();
          if (rest >= room ? rest % room != 0 : room % rest != 0) return std::nullopt;
          const std::int64_t taken = std::min(rest, room);
          rest /= taken;
          room /= taken;
          rest_begun = true;
        }
      }
    }
  }
  if (!layout.partial.empty()) {
    const auto reduction = std::find(reductions.begin(), reductions.end(), layout.reduction);
    if (reduction == reductions.end()) return std::nullopt;
    for (const AxisRef& axis : layout.partial) {
      const std::vector<std::size_t> axis_pieces = pieces_of(axis, pieces);
      if (axis_pieces.empty()) return std::nullopt;
      for (const std::size_t piece : axis_pieces) {
        placement.positions[piece] =
            static_cast<Placement::Position>(Placement::kPartial + (reduction - reductions.begin()));
      }
    }
  }
  return placement;
}

TensorLayout LayoutSpace::decode(const Placement& placement, const Shape& shape) const {
  // By slot and order, which is the order of positions.
  std::array<std::uint8_t, Placement::kMostPieces> order{};
  for (std::size_t i = 0; i < pieces.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(pieces.size()),
            [&](std::uint8_t a, std::uint8_t b) { return placement.positions[a] < placement.positions[b]; });
  TensorLayout layout;
  layout.dimensions.reserve(shape.size());
  std::size_t slot = 0;
  std::size_t at = 0;
  std::vector<IndexDigit> digits;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    digits.clear();
    std::int64_t left = shape[d];
    for (; slot < slots.size() && slots[slot].dimension == d; ++slot) {
      const bool is_last = !slots[slot].continues;
      std::int64_t room = is_last ? left : slots[slot].extent;
      left /= is_last ? 1 : slots[slot].extent;
      for (; at < pieces.size() && Placement::slot(placement.positions[order[at]]) == slot; ++at) {
        const AxisRef& piece = pieces[order[at]];
        digits.push_back({piece.size, piece});
        room /= piece.size;
      }
      digits.push_back({room, std::nullopt});
    }
    layout.dimensions.push_back(dimension_of_digits(joined(digits)));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Placement::Position position = placement.positions[i];
    if (position == Placement::kUnused || Placement::is_in_slot(position)) continue;
    layout.partial.push_back(pieces[i]);
    layout.reduction = reductions[position - Placement::kPartial];
  }
  layout.partial = joined(layout.partial);
  return layout;
}

std::int64_t num_devices(const LayoutSpace& space) {
  std::int64_t product = 1;
  for (const AxisRef& piece : space.pieces) product *= piece.size;
  return product;
}

std::int64_t num_placements(const LayoutSpace& space) {
  constexpr double kMost = 1e15;
  const auto choose = [](double n, double k) {
    double result = 1;
    for (double i = 0; i < k; ++i) result = result * (n - i) / (i + 1);
    return result;
  };
  const auto orders = [](double n, double k) {
    double result = 1;
    for (double i = 0; i < k; ++i) result *= n - i;
    return result;
  };
  std::map<std::int64_t, double> pieces_of_size;
  for (const AxisRef& piece : space.pieces) ++pieces_of_size[piece.size];
  double total = 1;
  for (const auto& [size, k] : pieces_of_size) {
    double digits = 0;  // with room for one piece
    double rows = 0;    // with room for many
    for (const Slot& slot : space.slots) {
      if (slot.extent > 1 && slot.extent % size == 0) ++(slot.continues ? digits : rows);
    }
    double ways = 0;
    for (double partial = 0; partial <= (space.reductions.empty() ? 0 : k); ++partial) {
      for (double single = 0; single <= std::min(k - partial, digits); ++single) {
        for (double others = 0; others <= (rows > 0 ? k - partial - single : 0); ++others) {
          ways += choose(k, partial) * choose(k - partial, single) * choose(k - partial - single, others) *
                  orders(digits, single) * orders(others, others) *
                  (others > 0 ? choose(others + rows - 1, rows - 1) : 1);
        }
      }
    }
    total *= ways;
  }
  total *= std::max(1.0, static_cast<double>(space.reductions.size()));
  return static_cast<std::int64_t>(std::min(total, kMost));
}

}  // namespace shardplan
