#include "layouts/redistribution/search/layout_space.h"

#include <algorithm>
#include <map>

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

std::optional<PieceState> PieceChart::encode(const TensorLayout& layout, const Shape& shape) const {
  PieceState state;
  std::size_t bin = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<IndexDigit> digits = index_digits(layout.dimensions[d], shape[d]);
    while (bin < bins.size() && bins[bin].dimension < d) ++bin;
    const auto is_cut = [](const IndexDigit& digit) { return digit.axis.has_value(); };
    if (std::none_of(digits.begin(), digits.end(), is_cut)) continue;
    if (bin == bins.size() || bins[bin].dimension != d) return std::nullopt;
    std::size_t at = bin;
    std::size_t position = 0;
    std::int64_t left = shape[d];                                     // behind the bins before this one
    std::int64_t room = bins[at].continues ? bins[at].extent : left;  // of this bin, not yet taken
    bool rest_begun = false;                                          // this bin's uncut digit
    const auto next_bin_if_full = [&] {
      if (room > 1 || !bins[at].continues) return;
      left /= bins[at].extent;
      ++at;
      position = 0;
      room = bins[at].continues ? bins[at].extent : left;
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
        state.place[piece] = static_cast<PieceState::Place>(PieceState::kPartial + (reduction - reductions.begin()));
      }
    }
  }
  return state;
}

TensorLayout PieceChart::decode(const PieceState& state, const Shape& shape) const {
  // By bin and position, since places sort so.
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
      for (; at < pieces.size() && PieceState::bin(state.place[order[at]]) == bin; ++at) {
        const AxisRef& piece = pieces[order[at]];
        digits.push_back({piece.size, piece});
        room /= piece.size;
      }
      digits.push_back({room, std::nullopt});
    }
    layout.dimensions.push_back(dimension_of_digits(joined(digits)));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const PieceState::Place place = state.place[i];
    if (place == PieceState::kUnused || place < PieceState::kPartial) continue;
    layout.partial.push_back(pieces[i]);
    layout.reduction = reductions[place - PieceState::kPartial];
  }
  layout.partial = joined(layout.partial);
  return layout;
}

std::int64_t num_states(const PieceChart& chart) {
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
  for (const AxisRef& piece : chart.pieces) ++pieces_of_size[piece.size];
  double total = 1;
  for (const auto& [size, k] : pieces_of_size) {
    double digits = 0;  // with room for one piece
    double rows = 0;    // with room for many
    for (const Bin& bin : chart.bins) {
      if (bin.extent > 1 && bin.extent % size == 0) ++(bin.continues ? digits : rows);
    }
    double ways = 0;
    for (double partial = 0; partial <= (chart.reductions.empty() ? 0 : k); ++partial) {
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
  total *= std::max(1.0, static_cast<double>(chart.reductions.size()));
  return static_cast<std::int64_t>(std::min(total, kMost));
}

}  // namespace shardplan
