// The steps between states.
//
// A state says for every piece of the mesh's axes in which part of which dimension it stands and at what position, or
// that it is partial or unused. What a device group can do in one collective:
//
//   slice            an unused piece is appended to a part                             free
//   to_partial       an unused piece, or the last of a part, becomes partial           free
//   all_to_all       the last pieces of a part are moved to the end of another part    one collective over all of them
//   reduce_scatter   partial pieces are appended to a part in any order                one collective over all of them
//   all_gather       the last pieces of a part are dropped                             one collective over all of them
//   all_reduce       some partial pieces are dropped                                   one collective over all of them
//   permute          any state with the same cuts of every part                        whole shards change places
//
// Only last pieces move, since the shards of a group must be neighbours to be joined; only permutes reorder. Several
// free slices are several edges, joined when the steps are told. With p pieces and b parts there are about p! (p+b)^b /
// b! states: 49 on three pieces and a matrix, 193 with four dimensions, 1,457 on four pieces; so the planner chooses
// few, large pieces.

#include "layouts/redistribution/search/redistribution_graph.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/error.h"
#include "base/random.h"

namespace shardplan {
namespace {

std::uint16_t bit(std::size_t piece) { return static_cast<std::uint16_t>(1u << piece); }

/// The pieces in each bin by position, what each bin is cut in, and which could take more.
struct Unpacked {
  std::array<std::array<std::uint8_t, PieceState::kMostPieces>, PieceState::kMostBins> list;
  std::array<std::uint8_t, PieceState::kMostBins> count{};
  std::array<std::int64_t, PieceState::kMostBins> product;
  std::array<std::uint16_t, 2> partial{};
  std::uint16_t unused = 0;
  std::array<std::uint8_t, PieceState::kMostBins> open_bins;
  std::size_t num_open = 0;

  Unpacked(const PieceChart& chart, const PieceState& state) {
    std::fill(product.begin(), product.begin() + static_cast<std::ptrdiff_t>(chart.bins.size()), 1);
    for (std::size_t piece = 0; piece < chart.pieces.size(); ++piece) {
      const PieceState::Place place = state.place[piece];
      if (place == PieceState::kUnused) {
        unused |= bit(piece);
      } else if (place >= PieceState::kPartial) {
        partial[place - PieceState::kPartial] |= bit(piece);
      } else {
        const std::size_t bin = PieceState::bin(place);
        list[bin][PieceState::position(place)] = static_cast<std::uint8_t>(piece);
        ++count[bin];
        product[bin] *= chart.pieces[piece].size;
      }
    }
    for (std::size_t bin = 0; bin < chart.bins.size(); ++bin) {
      if (product[bin] < chart.bins[bin].extent) open_bins[num_open++] = static_cast<std::uint8_t>(bin);
    }
  }
  std::span<const std::uint8_t> open() const { return {open_bins.data(), num_open}; }
};

}  // namespace

/// Makes the edges of one node in one chart.
class RedistributionGraph::Expansion {
 public:
  Expansion(RedistributionGraph& graph, std::uint8_t chart, const PieceState& state, std::int64_t num_shards)
      : graph_(graph),
        chart_index_(chart),
        chart_(graph.charts_[chart]),
        state_(state),
        unpacked_(chart_, state),
        num_shards_(num_shards) {}

  void make_edges() {
    slices();
    to_partial();
    for (std::size_t bin = 0; bin < chart_.bins.size(); ++bin) take_last_pieces(bin);
    if ((unpacked_.partial[0] | unpacked_.partial[1]) != 0) reductions();
    permutes();
  }

 private:
  bool may_stand(std::size_t piece, std::size_t bin) const {
    return !graph_.target_state_ || PieceState::bin(graph_.target_state_->place[piece]) == bin;
  }

  /// The end of a row of neighbouring parts, while pieces are appended.
  struct End {
    std::size_t bin;
    std::uint8_t count;
    std::int64_t product;
  };
  End end_of(std::size_t bin) const { return {bin, unpacked_.count[bin], unpacked_.product[bin]}; }
  bool append(PieceState& state, End& end, std::size_t piece) const {
    // A part that is cut to single elements goes on in the next part of its dimension.
    if (chart_.bins[end.bin].continues && end.product == chart_.bins[end.bin].extent &&
        unpacked_.count[end.bin + 1] == 0) {
      end = {end.bin + 1, 0, 1};
    }
    if (!may_stand(piece, end.bin)) return false;
    end.product *= chart_.pieces[piece].size;
    if (end.product > chart_.bins[end.bin].extent || chart_.bins[end.bin].extent % end.product != 0) return false;
    state.place[piece] = PieceState::in_bin(end.bin, end.count++);
    return true;
  }

  /// `divisor`: as for RedistributionPrice.
  void add(const PieceState& target, CollectiveKind kind, std::uint16_t pieces, int from_bin, int to_bin,
           std::int64_t divisor) {
    const auto dimension = [&](int bin) {
      return bin < 0 ? std::int8_t{-1} : static_cast<std::int8_t>(chart_.bins[bin].dimension);
    };
    graph_.edges_.push_back({graph_.node(chart_index_, target), graph_.price(kind, chart_index_, pieces, divisor),
                             dimension(from_bin), dimension(to_bin)});
  }
  void add(const PieceState& target, CollectiveKind kind, std::uint16_t pieces, int from_bin, int to_bin) {
    add(target, kind, pieces, from_bin, to_bin, num_shards_);
  }
  static bool is_in_bin(PieceState::Place place) { return place < PieceState::kPartial; }

  void slices() {
    for (std::size_t piece = 0; piece < chart_.pieces.size(); ++piece) {
      if ((unpacked_.unused & bit(piece)) == 0) continue;
      for (const std::size_t bin : unpacked_.open()) {
        PieceState next = state_;
        End end = end_of(bin);
        if (append(next, end, piece)) {
          add(next, CollectiveKind::kSlice, bit(piece), -1, static_cast<int>(bin));
        }
      }
    }
  }

  void to_partial() {
    for (std::size_t r = 0; r < chart_.reductions.size(); ++r) {
      if (unpacked_.partial[1 - r] != 0) continue;
      const auto become = [&](std::size_t piece, int from_bin) {
        const auto place = static_cast<PieceState::Place>(PieceState::kPartial + r);
        if (graph_.target_state_ && graph_.target_state_->place[piece] != place) return;
        if (from_bin >= 0 && num_shards_ / chart_.pieces[piece].size < graph_.least_shards_) return;
        PieceState next = state_;
        next.place[piece] = place;
        add(next, CollectiveKind::kToPartial, bit(piece), from_bin, -1);
      };
      for (std::size_t piece = 0; piece < chart_.pieces.size(); ++piece) {
        if ((unpacked_.unused & bit(piece)) != 0) become(piece, -1);
      }
      for (std::size_t bin = 0; bin < chart_.bins.size(); ++bin) {
        if (unpacked_.count[bin] > 0) become(unpacked_.list[bin][unpacked_.count[bin] - 1], static_cast<int>(bin));
      }
    }
  }

  /// all_gather and all_to_all of the last one, two, ... pieces of a part, and of the full parts before it.
  void take_last_pieces(std::size_t bin) {
    PieceState without = state_;
    std::array<std::size_t, PieceState::kMostPieces> taken{};  // minor to major
    std::size_t num_taken = 0;
    std::uint16_t pieces = 0;
    std::int64_t shards_left = num_shards_;
    for (std::size_t source = bin; true; --source) {
      for (std::size_t left = unpacked_.count[source]; left-- > 0;) {
        const std::size_t piece = unpacked_.list[source][left];
        if ((graph_.fixed_ & bit(piece)) != 0) return;
        taken[num_taken++] = piece;
        pieces |= bit(piece);
        shards_left /= chart_.pieces[piece].size;
        without.place[piece] = PieceState::kUnused;
        if (shards_left >= graph_.least_shards_) {
          add(without, CollectiveKind::kAllGather, pieces, static_cast<int>(bin), -1, shards_left);
        }
        for (const std::size_t to : unpacked_.open()) {
          if (to >= source && to <= bin) continue;
          PieceState next = without;
          End end = end_of(to);
          bool fits = true;
          for (std::size_t i = num_taken; fits && i-- > 0;) fits = append(next, end, taken[i]);
          if (fits) add(next, CollectiveKind::kAllToAll, pieces, static_cast<int>(bin), static_cast<int>(to));
        }
      }
      if (source == 0 || !chart_.bins[source - 1].continues) break;
      if (unpacked_.product[source - 1] != chart_.bins[source - 1].extent || unpacked_.count[source - 1] == 0) break;
    }
  }

  void reductions() {
    const std::uint16_t partial = unpacked_.partial[0] | unpacked_.partial[1];
    for (std::uint32_t some = partial; some != 0; some = (some - 1) & partial) {
      PieceState next = state_;
      for (std::size_t i = 0; i < chart_.pieces.size(); ++i) {
        if ((some & bit(i)) != 0) next.place[i] = PieceState::kUnused;
      }
      add(next, CollectiveKind::kAllReduce, static_cast<std::uint16_t>(some), -1, -1);
    }
    for (const std::size_t bin : unpacked_.open()) scatter(state_, end_of(bin), partial, 0, bin);
  }
  void scatter(const PieceState& state, const End& end, std::uint16_t left, std::uint16_t taken, std::size_t bin) {
    for (std::size_t piece = 0; piece < chart_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0) continue;
      PieceState next = state;
      End next_end = end;
      if (!append(next, next_end, piece)) continue;
      const std::uint16_t pieces = taken | bit(piece);
      add(next, CollectiveKind::kReduceScatter, pieces, -1, static_cast<int>(bin));
      scatter(next, next_end, left & static_cast<std::uint16_t>(~bit(piece)), pieces, bin);
    }
  }

  /// All states with the same cuts, by filling the bins one after the other and the partial axes last.
  void permutes() {
    for (std::size_t bin = 0; bin < chart_.bins.size(); ++bin) {
      std::int64_t product = 1;
      for (std::size_t i = 0; i < unpacked_.count[bin]; ++i) {
        weight_[unpacked_.list[bin][i]] = product;
        product *= chart_.pieces[unpacked_.list[bin][i]].size;
      }
    }
    PieceState next;
    const auto all = static_cast<std::uint16_t>((1u << chart_.pieces.size()) - 1);
    fill(0, 0, 1, all, all, next);
  }
  /// `left`: pieces without a place yet; `moved`: those of which it is not known yet that they stay.
  void fill(std::size_t bin, std::uint8_t position, std::int64_t product, std::uint16_t left, std::uint16_t moved,
            PieceState& next) {
    while (bin < chart_.bins.size() && product == unpacked_.product[bin]) {
      ++bin;
      position = 0;
      product = 1;
    }
    if (bin == chart_.bins.size()) {
      const std::size_t r = unpacked_.partial[1] != 0 ? 1 : 0;
      std::int64_t summands = 1;
      for (std::size_t i = 0; i < chart_.pieces.size(); ++i) {
        if ((unpacked_.partial[r] & bit(i)) != 0) summands *= chart_.pieces[i].size;
      }
      fill_partial(0, r, summands, left, moved, next);
      return;
    }
    for (std::size_t piece = 0; piece < chart_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0) continue;
      const std::int64_t next_product = product * chart_.pieces[piece].size;
      if (unpacked_.product[bin] % next_product != 0) continue;
      next.place[piece] = PieceState::in_bin(bin, position);
      const bool serves = prefix_serves_target(bin, position, piece);
      if (serves) {
        // A piece with the same weight in the same part keeps its coordinate.
        const PieceState::Place place = state_.place[piece];
        const bool stays = is_in_bin(place) && PieceState::bin(place) == bin && weight_[piece] == product;
        fill(bin, position + 1, next_product, left & static_cast<std::uint16_t>(~bit(piece)),
             stays ? moved & static_cast<std::uint16_t>(~bit(piece)) : moved, next);
      }
      next.place[piece] = PieceState::kUnused;
      if (serves && graph_.target_state_) return;
    }
  }
  /// Towards one target, a permute leaves each part beginning as it ends; behind that, the first piece that fits will
  /// do.
  bool prefix_serves_target(std::size_t bin, std::uint8_t position, std::size_t piece) const {
    if (!graph_.target_state_) return true;
    const PieceState::Place at = PieceState::in_bin(bin, position);
    const auto& wanted = graph_.target_state_->place;
    return wanted[piece] == at || std::find(wanted.begin(), wanted.end(), at) == wanted.end();
  }
  void fill_partial(std::size_t piece, std::size_t r, std::int64_t summands, std::uint16_t left, std::uint16_t moved,
                    PieceState& next) {
    if (summands == 1) {
      if (next != state_) add_permute(next, moved);
      return;
    }
    for (; piece < chart_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0 || summands % chart_.pieces[piece].size != 0) continue;
      next.place[piece] = static_cast<PieceState::Place>(PieceState::kPartial + r);
      fill_partial(piece + 1, r, summands / chart_.pieces[piece].size, left, moved, next);
      next.place[piece] = PieceState::kUnused;
    }
  }

  /// The group is spanned by the pieces that stand elsewhere than before.
  void add_permute(const PieceState& next, std::uint16_t moved) {
    for (std::size_t i = 0; i < chart_.pieces.size(); ++i) {
      if (!is_in_bin(next.place[i]) && next.place[i] == state_.place[i]) moved &= static_cast<std::uint16_t>(~bit(i));
    }
    add(next, CollectiveKind::kCollectivePermute, moved, -1, -1);
  }

  RedistributionGraph& graph_;
  std::uint8_t chart_index_;
  const PieceChart& chart_;
  PieceState state_;
  Unpacked unpacked_;
  std::int64_t num_shards_;
  std::array<std::int64_t, PieceState::kMostPieces> weight_;  // product of the pieces before it in its part
};

RedistributionGraph::RedistributionGraph(std::vector<PieceChart> charts, Shape shape,
                                         const std::optional<Ends>& only_ends)
    : charts_(std::move(charts)), shape_(std::move(shape)) {
  SHARDPLAN_CHECK(!charts_.empty() && charts_.size() <= (only_ends ? 1 : kMostCharts));
  node_of_state_.resize(charts_.size());
  for (const PieceChart& chart : charts_) {
    SHARDPLAN_CHECK(chart.pieces.size() <= PieceState::kMostPieces && chart.bins.size() <= PieceState::kMostBins);
  }
  if (!only_ends) return;
  const auto& [source, target, least_shards] = *only_ends;
  target_state_ = target;
  least_shards_ = least_shards;
  for (std::size_t bin = 0; bin < charts_[0].bins.size(); ++bin) {
    for (std::size_t position = 0; position < PieceState::kMostPieces; ++position) {
      const auto piece = std::find(source.place.begin(), source.place.end(), PieceState::in_bin(bin, position));
      if (piece == source.place.end() || target.place[piece - source.place.begin()] != *piece) break;
      fixed_ |= bit(piece - source.place.begin());
    }
  }
}

bool RedistributionGraph::may_become_partial(std::size_t piece) const {
  if (!target_state_) return !charts_[0].reductions.empty();
  const PieceState::Place place = target_state_->place[piece];
  return place != PieceState::kUnused && place >= PieceState::kPartial;
}

std::optional<std::uint32_t> RedistributionGraph::find(const TensorLayout& layout, const Shape& shape) {
  for (std::size_t chart = 0; chart < charts_.size(); ++chart) {
    if (const auto state = charts_[chart].encode(layout, shape)) return node(static_cast<std::uint8_t>(chart), *state);
  }
  return std::nullopt;
}

std::uint32_t RedistributionGraph::node(std::uint8_t chart, const PieceState& state) {
  const auto [id, is_new] = node_of_state_[chart].try_emplace(state, static_cast<std::uint32_t>(nodes_.size()));
  if (!is_new) return id;
  states_.resize(states_.size() + charts_.size());
  PieceState* const states = states_.data() + id * charts_.size();
  Node& node = nodes_.emplace_back();
  node.charts = static_cast<std::uint8_t>(1u << chart);
  states[chart] = state;
  for (std::size_t i = 0; i < charts_[chart].pieces.size(); ++i) {
    if (state.place[i] < PieceState::kPartial) node.num_shards *= charts_[chart].pieces[i].size;
  }
  for (std::size_t other = 0; other < charts_.size(); ++other) {
    if (other == chart) continue;
    if (const auto same = charts_[other].encode(charts_[chart].decode(state, shape_), shape_)) {
      node.charts |= static_cast<std::uint8_t>(1u << other);
      states[other] = *same;
      node_of_state_[other].try_emplace(*same, id);
    }
  }
  return id;
}

std::uint32_t RedistributionGraph::price(CollectiveKind kind, std::uint8_t chart, std::uint16_t pieces,
                                         std::int64_t divisor) {
  // A mesh has fewer than 2^32 devices.
  const std::uint64_t key = static_cast<std::uint64_t>(divisor) << 32 | static_cast<std::uint64_t>(kind) << 24 |
                            static_cast<std::uint64_t>(chart) << 16 | pieces;
  const auto [number, is_new] = price_of_key_.try_emplace(key, static_cast<std::uint32_t>(prices_.size()));
  if (is_new) {
    std::int64_t group_size = 1;
    for (std::size_t i = 0; i < charts_[chart].pieces.size(); ++i) {
      if ((pieces & bit(i)) != 0) group_size *= charts_[chart].pieces[i].size;
    }
    prices_.push_back({kind, chart, pieces, group_size, divisor});
  }
  return number;
}

std::span<const RedistributionEdge> RedistributionGraph::edges(std::uint32_t state) {
  if (nodes_[state].num_edges == kNotMade) {
    nodes_[state].first_edge = edges_.size();
    for (std::uint8_t chart = 0; chart < charts_.size(); ++chart) {
      const PieceState* const here = this->state(state, chart);
      if (here != nullptr) Expansion(*this, chart, *here, nodes_[state].num_shards).make_edges();
    }
    nodes_[state].num_edges = static_cast<std::uint32_t>(edges_.size() - nodes_[state].first_edge);
  }
  return {edges_.data() + nodes_[state].first_edge, nodes_[state].num_edges};
}

TensorLayout RedistributionGraph::layout(std::uint32_t state, const Shape& shape) const {
  const std::size_t chart = chart_of(state);
  return charts_[chart].decode(*this->state(state, chart), shape);
}

bool RedistributionGraph::is_before(std::uint32_t a, std::uint32_t b) const {
  for (std::size_t chart = 0; chart < charts_.size(); ++chart) {
    const PieceState* const x = state(a, chart);
    const PieceState* const y = state(b, chart);
    if (x == nullptr && y == nullptr) continue;
    if (x == nullptr || y == nullptr) return x == nullptr;
    if (*x != *y) return *x < *y;
  }
  return false;
}

std::vector<AxisRef> RedistributionGraph::axes(std::uint8_t chart, std::uint16_t pieces) const {
  std::vector<AxisRef> axes;
  for (std::size_t i = 0; i < charts_[chart].pieces.size(); ++i) {
    if ((pieces & bit(i)) != 0) axes.push_back(charts_[chart].pieces[i]);
  }
  return joined(axes);
}

std::vector<AxisRef> RedistributionGraph::ordered_axes(std::uint32_t from, const RedistributionEdge& edge) const {
  // A place sorts by bin and position; the side on which the pieces stand in a bin tells their order.
  const auto& [kind, chart, pieces, group_size, divisor] = prices_[edge.price];
  const bool by_source = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll;
  const PieceState& state = *this->state(by_source ? from : edge.target, chart);
  std::vector<std::pair<PieceState::Place, AxisRef>> placed;
  for (std::size_t i = 0; i < charts_[chart].pieces.size(); ++i) {
    if ((pieces & bit(i)) != 0) placed.emplace_back(state.place[i], charts_[chart].pieces[i]);
  }
  const bool is_ordered = by_source || kind == CollectiveKind::kSlice || kind == CollectiveKind::kReduceScatter;
  if (is_ordered) std::sort(placed.begin(), placed.end());
  std::vector<AxisRef> axes;
  for (const auto& [place, axis] : placed) axes.push_back(axis);
  return joined(axes);
}

std::size_t RedistributionGraph::StateHash::operator()(const PieceState& state) const noexcept {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : state.words()) {
    if (word == UINT64_MAX) break;  // mostly there are no more pieces
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

std::size_t RedistributionGraph::PriceHash::operator()(std::uint64_t key) const noexcept {
  return (key * 0x9e3779b97f4a7c15) >> 32;
}

}  // namespace shardplan
