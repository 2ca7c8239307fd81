// The steps between states.
//
// A state says for every piece of the mesh's axes in which part of which dimension it stands and at what position, or
// that it is partial or unused. What a device group can do in one collective:
//
//   slice            an unused piece is appended to a part                               free
//   to_partial       an unused piece, or the last of a part, becomes partial             free
//   all_to_all       the last pieces of a part are moved to the end of another part      one collective over all of
//   them reduce_scatter   partial pieces are appended to a part in any order                  one collective over all
//   of them all_gather       the last pieces of a part are dropped                               one collective over
//   all of them all_reduce       some partial pieces are dropped                                     one collective
//   over all of them permute          any state with the same cuts of every part: whole shards change places
//
// Only last pieces move, since the shards of a group must be neighbours to be joined; only permutes reorder. Several
// free slices are several edges, joined when the steps are told. With p pieces and b parts there are about p! (p+b)^b /
// b! states: 49 on three pieces and a matrix, 193 with four dimensions, 1,457 on four pieces; so the planner chooses
// few, large pieces.

#include "layouts/redistribution_graph.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/random.h"

namespace shardplan {
namespace {

std::uint16_t bit(std::size_t piece) { return static_cast<std::uint16_t>(1u << piece); }

/// The pieces in each bin by position, and what each bin is cut in.
struct Unpacked {
  std::array<std::array<std::uint8_t, PieceState::kMostPieces>, PieceState::kMostBins> list;
  std::array<std::uint8_t, PieceState::kMostBins> count{};
  std::array<std::int64_t, PieceState::kMostBins> product;
  std::array<std::uint16_t, 2> partial{};
  std::uint16_t unused = 0;

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
  }
};

}  // namespace

/// Makes the edges of one node in one chart.
class RedistributionGraph::Expansion {
 public:
  Expansion(RedistributionGraph& graph, std::uint8_t chart, const PieceState& state, std::int64_t num_shards,
            std::vector<RedistributionEdge>& edges)
      : graph_(graph),
        chart_index_(chart),
        chart_(graph.charts_[chart]),
        state_(state),
        unpacked_(chart_, state),
        num_shards_(num_shards),
        edges_(edges) {}

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
    if (chart_.bins[end.bin].extent % end.product != 0) return false;
    state.place[piece] = PieceState::in_bin(end.bin, end.count++);
    return true;
  }

  void add(const PieceState& target, CollectiveKind kind, std::uint16_t pieces, int from_bin, int to_bin) {
    std::int64_t divisor = num_shards_;
    for (std::size_t i = 0; kind == CollectiveKind::kAllGather && i < chart_.pieces.size(); ++i) {
      if ((pieces & bit(i)) != 0) divisor /= chart_.pieces[i].size;
    }
    RedistributionEdge edge;
    edge.kind = kind;
    edge.chart = chart_index_;
    edge.pieces = pieces;
    edge.from_dim = from_bin < 0 ? std::int8_t{-1} : static_cast<std::int8_t>(chart_.bins[from_bin].dimension);
    edge.to_dim = to_bin < 0 ? std::int8_t{-1} : static_cast<std::int8_t>(chart_.bins[to_bin].dimension);
    edge.price = graph_.price(kind, chart_index_, pieces, divisor);
    edge.target = graph_.node(chart_index_, target);
    edges_.push_back(edge);
  }
  static bool is_in_bin(PieceState::Place place) { return place < PieceState::kPartial; }

  void slices() {
    for (std::size_t piece = 0; piece < chart_.pieces.size(); ++piece) {
      if ((unpacked_.unused & bit(piece)) == 0) continue;
      for (std::size_t bin = 0; bin < chart_.bins.size(); ++bin) {
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
    for (std::size_t source = bin; true; --source) {
      for (std::size_t left = unpacked_.count[source]; left-- > 0;) {
        const std::size_t piece = unpacked_.list[source][left];
        if ((graph_.fixed_ & bit(piece)) != 0) return;
        taken[num_taken++] = piece;
        pieces |= bit(piece);
        without.place[piece] = PieceState::kUnused;
        add(without, CollectiveKind::kAllGather, pieces, static_cast<int>(bin), -1);
        for (std::size_t to = 0; to < chart_.bins.size(); ++to) {
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
    for (std::size_t bin = 0; bin < chart_.bins.size(); ++bin) scatter(state_, end_of(bin), partial, 0, bin);
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
    PieceState next;
    const auto all = static_cast<std::uint16_t>((1u << chart_.pieces.size()) - 1);
    fill(0, 0, 1, all, next);
  }
  void fill(std::size_t bin, std::uint8_t position, std::int64_t product, std::uint16_t left, PieceState& next) {
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
      fill_partial(0, r, summands, left, next);
      return;
    }
    for (std::size_t piece = 0; piece < chart_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0) continue;
      const std::int64_t next_product = product * chart_.pieces[piece].size;
      if (unpacked_.product[bin] % next_product != 0) continue;
      next.place[piece] = PieceState::in_bin(bin, position);
      const bool serves = prefix_serves_target(bin, position, piece);
      if (serves) {
        fill(bin, position + 1, next_product, left & static_cast<std::uint16_t>(~bit(piece)), next);
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
  void fill_partial(std::size_t piece, std::size_t r, std::int64_t summands, std::uint16_t left, PieceState& next) {
    if (summands == 1) {
      if (next != state_) add_permute(next);
      return;
    }
    for (; piece < chart_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0 || summands % chart_.pieces[piece].size != 0) continue;
      next.place[piece] = static_cast<PieceState::Place>(PieceState::kPartial + r);
      fill_partial(piece + 1, r, summands / chart_.pieces[piece].size, left, next);
      next.place[piece] = PieceState::kUnused;
    }
  }

  /// The group is spanned by the pieces that stand elsewhere than before. A piece with the same weight in the same part
  /// keeps its coordinate.
  void add_permute(const PieceState& next) {
    const Unpacked after(chart_, next);
    std::uint16_t moved = 0;
    for (std::size_t i = 0; i < chart_.pieces.size(); ++i) {
      const PieceState::Place place = next.place[i];
      const bool stays = is_in_bin(place) ? is_in_bin(state_.place[i]) &&
                                                PieceState::bin(place) == PieceState::bin(state_.place[i]) &&
                                                pieces_before(unpacked_, state_.place[i]) == pieces_before(after, place)
                                          : place == state_.place[i];
      if (!stays) moved |= bit(i);
    }
    add(next, CollectiveKind::kCollectivePermute, moved, -1, -1);
  }
  std::int64_t pieces_before(const Unpacked& unpacked, PieceState::Place place) const {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < PieceState::position(place); ++i) {
      product *= chart_.pieces[unpacked.list[PieceState::bin(place)][i]].size;
    }
    return product;
  }

  RedistributionGraph& graph_;
  std::uint8_t chart_index_;
  const PieceChart& chart_;
  PieceState state_;
  Unpacked unpacked_;
  std::int64_t num_shards_;
  std::vector<RedistributionEdge>& edges_;
};

RedistributionGraph::RedistributionGraph(std::vector<PieceChart> charts, Shape shape,
                                         const std::optional<std::pair<PieceState, PieceState>>& only_ends)
    : charts_(std::move(charts)), shape_(std::move(shape)) {
  SHARDPLAN_CHECK(!charts_.empty() && charts_.size() <= (only_ends ? 1 : 2));
  for (const PieceChart& chart : charts_) {
    SHARDPLAN_CHECK(chart.pieces.size() <= PieceState::kMostPieces && chart.bins.size() <= PieceState::kMostBins);
  }
  node_of_state_[0].reserve(512);
  price_of_key_.reserve(128);
  if (!only_ends) return;
  const auto& [source, target] = *only_ends;
  target_state_ = target;
  for (std::size_t bin = 0; bin < charts_[0].bins.size(); ++bin) {
    for (std::size_t position = 0; position < PieceState::kMostPieces; ++position) {
      const auto piece = std::find(source.place.begin(), source.place.end(), PieceState::in_bin(bin, position));
      if (piece == source.place.end() || target.place[piece - source.place.begin()] != *piece) break;
      fixed_ |= bit(piece - source.place.begin());
    }
  }
}

std::optional<std::uint32_t> RedistributionGraph::find(const TensorLayout& layout, const Shape& shape) {
  for (std::size_t chart = 0; chart < charts_.size(); ++chart) {
    if (const auto state = charts_[chart].encode(layout, shape)) return node(static_cast<std::uint8_t>(chart), *state);
  }
  return std::nullopt;
}

std::uint32_t RedistributionGraph::node(std::uint8_t chart, const PieceState& state) {
  const auto [entry, is_new] = node_of_state_[chart].try_emplace(state, static_cast<std::uint32_t>(nodes_.size()));
  if (!is_new) return entry->second;
  const std::uint32_t id = entry->second;
  Node node;
  node.states[chart] = state;
  for (std::size_t i = 0; i < charts_[chart].pieces.size(); ++i) {
    if (state.place[i] < PieceState::kPartial) node.num_shards *= charts_[chart].pieces[i].size;
  }
  if (charts_.size() == 2) {
    const std::uint8_t other = 1 - chart;
    if (const auto same = charts_[other].encode(charts_[chart].decode(state, shape_), shape_)) {
      node.states[other] = same;
      node_of_state_[other].emplace(*same, id);
    }
  }
  nodes_.push_back(std::move(node));
  return id;
}

std::uint32_t RedistributionGraph::price(CollectiveKind kind, std::uint8_t chart, std::uint16_t pieces,
                                         std::int64_t divisor) {
  const std::array<std::int64_t, 2> key = {divisor, (static_cast<std::int64_t>(kind) << 32) | (chart << 16) | pieces};
  const auto [entry, is_new] = price_of_key_.try_emplace(key, static_cast<std::uint32_t>(prices_.size()));
  if (is_new) {
    std::int64_t group_size = 1;
    for (std::size_t i = 0; i < charts_[chart].pieces.size(); ++i) {
      if ((pieces & bit(i)) != 0) group_size *= charts_[chart].pieces[i].size;
    }
    prices_.push_back({kind, chart, pieces, group_size, divisor});
  }
  return entry->second;
}

const std::vector<RedistributionEdge>& RedistributionGraph::edges(std::uint32_t state) {
  if (!nodes_[state].has_edges) {
    new_edges_.clear();
    for (std::uint8_t chart = 0; chart < charts_.size(); ++chart) {
      if (!nodes_[state].states[chart]) continue;
      Expansion(*this, chart, *nodes_[state].states[chart], nodes_[state].num_shards, new_edges_).make_edges();
    }
    nodes_[state].edges.assign(new_edges_.begin(), new_edges_.end());
    nodes_[state].has_edges = true;
  }
  return nodes_[state].edges;
}

TensorLayout RedistributionGraph::layout(std::uint32_t state, const Shape& shape) const {
  const std::size_t chart = nodes_[state].states[0] ? 0 : 1;
  return charts_[chart].decode(*nodes_[state].states[chart], shape);
}

bool RedistributionGraph::is_before(std::uint32_t a, std::uint32_t b) const {
  return nodes_[a].states < nodes_[b].states;
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
  const bool by_source = edge.kind == CollectiveKind::kAllGather || edge.kind == CollectiveKind::kAllToAll;
  const PieceState& state = *nodes_[by_source ? from : edge.target].states[edge.chart];
  std::vector<std::pair<PieceState::Place, AxisRef>> placed;
  for (std::size_t i = 0; i < charts_[edge.chart].pieces.size(); ++i) {
    if ((edge.pieces & bit(i)) != 0) placed.emplace_back(state.place[i], charts_[edge.chart].pieces[i]);
  }
  const bool is_ordered =
      by_source || edge.kind == CollectiveKind::kSlice || edge.kind == CollectiveKind::kReduceScatter;
  if (is_ordered) std::sort(placed.begin(), placed.end());
  std::vector<AxisRef> axes;
  for (const auto& [place, axis] : placed) axes.push_back(axis);
  return joined(axes);
}

std::size_t RedistributionGraph::StateHash::operator()(const PieceState& state) const noexcept {
  static_assert(sizeof(state.place) == 4 * sizeof(std::uint64_t));
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(state.place);
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) hash = std::rotl(hash, 29) ^ (word * 0x9e3779b97f4a7c15);
  return mix(hash);
}

std::size_t RedistributionGraph::PriceHash::operator()(const std::array<std::int64_t, 2>& key) const noexcept {
  return mix(static_cast<std::uint64_t>(key[1]) ^ (static_cast<std::uint64_t>(key[0]) * 0x9e3779b97f4a7c15));
}

}  // namespace shardplan
