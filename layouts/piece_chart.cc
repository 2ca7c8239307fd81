#include "layouts/piece_chart.h"

#include <algorithm>

namespace shardplan {
namespace {

/// The pieces that an axis consists of, in order; empty if it is no union of consecutive pieces.
std::vector<std::size_t> pieces_of(const AxisRef& axis, const std::vector<AxisRef>& pieces) {
  std::vector<std::size_t> result;
  std::int64_t at = axis.before;
  const std::int64_t end = axis.before * axis.size;
  for (std::size_t i = 0; i < pieces.size() && at < end; ++i) {
    if (pieces[i].axis != axis.axis || pieces[i].before != at) continue;
    result.push_back(i);
    at *= pieces[i].size;
  }
  if (at != end) result.clear();
  return result;
}

}  // namespace

std::optional<PieceState> PieceChart::encode(const TensorLayout& layout, const Shape& shape) const {
  PieceState state;
  std::size_t bin = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<IndexDigit> digits = index_digits(layout.dimensions[d], shape[d]);
    while (bin < bins.size() && bins[bin].dimension < d) ++bin;
    const auto is_cut = [](const IndexDigit& digit) { return digit.axis.has_value(); };
    if (std::none_of(digits.begin(), digits.end(), is_cut)) continue;
    if (bin == bins.size() || bins[bin].dimension != d) return std::nullopt;
    // A dimension of one bin: all cuts first, then the rest. Otherwise the bins are filled one after the other.
    if (!bins[bin].continues) {
      std::size_t position = 0;
      std::int64_t product = 1;
      for (std::size_t i = 0; i < digits.size(); ++i) {
        if (!digits[i].axis) {
          if (i + 1 < digits.size()) return std::nullopt;
          continue;
        }
        const std::vector<std::size_t> axis_pieces = pieces_of(*digits[i].axis, pieces);
        if (axis_pieces.empty()) return std::nullopt;
        for (const std::size_t piece : axis_pieces) {
          state.place[piece] = PieceState::in_bin(bin, position++);
          product *= pieces[piece].size;
        }
      }
      if (bins[bin].extent % product != 0) return std::nullopt;
      continue;
    }
    std::size_t at = bin;
    std::size_t position = 0;
    std::int64_t room = bins[at].extent;  // of the current bin, not yet taken
    bool rest_begun = false;              // the current bin's uncut digit
    const auto next_bin_if_full = [&] {
      if (room > 1 || !bins[at].continues) return;
      ++at;
      position = 0;
      room = bins[at].extent;
      rest_begun = false;
    };
    for (const IndexDigit& digit : digits) {
      if (digit.axis) {
        const std::vector<std::size_t> axis_pieces = pieces_of(*digit.axis, pieces);
        if (axis_pieces.empty()) return std::nullopt;
        for (const std::size_t piece : axis_pieces) {
          next_bin_if_full();
          if (rest_begun || room % pieces[piece].size != 0) return std::nullopt;
          state.place[piece] = PieceState::in_bin(at, position++);
          room /= pieces[piece].size;
        }
      } else {
        for (std::int64_t rest = digit.size; rest > 1;) {
          next_bin_if_full();
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
        state.place[piece] = static_cast<std::uint8_t>(PieceState::kPartial + (reduction - reductions.begin()));
      }
    }
  }
  return state;
}

TensorLayout PieceChart::decode(const PieceState& state, const Shape& shape) const {
  // By bin and position, since the bytes sort so.
  std::array<std::uint8_t, PieceState::kMostPieces> order{};
  for (std::size_t i = 0; i < pieces.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(pieces.size()),
            [&](std::uint8_t a, std::uint8_t b) { return state.place[a] < state.place[b]; });
  TensorLayout layout;
  layout.dimensions.reserve(shape.size());
  std::size_t bin = 0;
  std::size_t at = 0;
  std::vector<IndexDigit> digits;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    digits.clear();
    std::int64_t left = shape[d];
    for (; bin < bins.size() && bins[bin].dimension == d; ++bin) {
      const bool is_last = !bins[bin].continues;
      std::int64_t room = is_last ? left : bins[bin].extent;
      left /= is_last ? 1 : bins[bin].extent;
      for (; at < pieces.size() && state.place[order[at]] >> 4 == bin; ++at) {
        const AxisRef& piece = pieces[order[at]];
        digits.push_back({piece.size, piece});
        room /= piece.size;
      }
      digits.push_back({room, std::nullopt});
    }
    layout.dimensions.push_back(dimension_of_digits(joined(digits)));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::uint8_t place = state.place[i];
    if (place == PieceState::kUnused || place < PieceState::kPartial) continue;
    layout.partial.push_back(pieces[i]);
    layout.reduction = reductions[place - PieceState::kPartial];
  }
  layout.partial = joined(layout.partial);
  return layout;
}

std::int64_t num_states(std::size_t pieces, std::size_t bins, std::size_t reductions) {
  constexpr double kMost = 1e15;
  const auto choose = [](double n, double k) {
    double result = 1;
    for (double i = 0; i < k; ++i) result = result * (n - i) / (i + 1);
    return result;
  };
  double total = 0;
  const double k = static_cast<double>(pieces);
  const double b = static_cast<double>(bins);
  for (double partial = 0; partial <= (reductions == 0 ? 0 : k); ++partial) {
    double placed_ways = 1;  // none in a bin
    double orders = 1;
    for (double placed = 1; bins > 0 && placed <= k - partial; ++placed) {
      orders *= placed;
      placed_ways += choose(k - partial, placed) * orders * choose(placed + b - 1, b - 1);
    }
    total += choose(k, partial) * (partial == 0 ? 1.0 : static_cast<double>(reductions)) * placed_ways;
  }
  return static_cast<std::int64_t>(std::min(total, kMost));
}

}  // namespace shardplan
