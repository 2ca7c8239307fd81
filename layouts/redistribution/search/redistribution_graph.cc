// The steps between states.
//
// A state says for every piece of the mesh in which slot (a digit of a dimension) it stands and in which order there,
// or that it is partial or unused. What a device group can do in one collective:
//
//   slice            an unused piece is appended to a slot                             free
//   to_partial       an unused piece, or the last of a slot, becomes partial           free
//   all_to_all       the last pieces of a slot are moved to the end of another slot    one collective over all of them
//   reduce_scatter   partial pieces are appended to a slot in any order                one collective over all of them
//   all_gather       the last pieces of a slot are dropped                             one collective over all of them
//   all_reduce       some partial pieces are dropped                                   one collective over all of them
//   permute          any state with the same number of shards along every slot         whole shards change places
//
// Only last pieces move, since the shards of a group must be neighbours to be joined; only permutes reorder. Several
// free slices are several edges, joined when the path becomes steps. With p pieces and b slots there are about
// p! (p+b)^b / b! states: 49 on three pieces and a matrix, 193 with four dimensions, 1,457 on four pieces; so the
// planner chooses few, large pieces.

#include "layouts/redistribution/search/redistribution_graph.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/error.h"
#include "base/random.h"

namespace shardplan {
namespace {

std::uint16_t bit(std::size_t piece) { return static_cast<std::uint16_t>(1u << piece); }

/// The pieces in each slot by position, what each slot is cut in, and which could take more.
struct Unpacked {
  std::array<std::array<std::uint8_t, Placement::kMostPieces>, Placement::kMostSlots> list;
  std::array<std::uint8_t, Placement::kMostSlots> count{};
  std::array<std::int64_t, Placement::kMostSlots> product;
  std::array<std::uint16_t, 2> partial{};
  std::uint16_t unused = 0;
  std::array<std::uint8_t, Placement::kMostSlots> open_slots;
  std::size_t num_open = 0;

  Unpacked(const LayoutSpace& space, const Placement& placement) {
    std::fill(product.begin(), product.begin() + static_cast<std::ptrdiff_t>(space.slots.size()), 1);
    for (std::size_t piece = 0; piece < space.pieces.size(); ++piece) {
      const Placement::Position position = placement.positions[piece];
      if (position == Placement::kUnused) {
        unused |= bit(piece);
      } else if (!Placement::is_in_slot(position)) {
        partial[position - Placement::kPartial] |= bit(piece);
      } else {
        const std::size_t slot = Placement::slot(position);
        list[slot][Placement::order(position)] = static_cast<std::uint8_t>(piece);
        ++count[slot];
        product[slot] *= space.pieces[piece].size;
      }
    }
    for (std::size_t slot = 0; slot < space.slots.size(); ++slot) {
      if (product[slot] < space.slots[slot].extent) open_slots[num_open++] = static_cast<std::uint8_t>(slot);
    }
  }
  std::span<const std::uint8_t> open() const { return {open_slots.data(), num_open}; }
};

}  // namespace

/// Makes the edges of one node in one space.
class RedistributionGraph::Expansion {
 public:
  Expansion(RedistributionGraph& graph, std::uint8_t space, const Placement& placement, std::int64_t num_shards)
      : graph_(graph),
        space_index_(space),
        space_(graph.spaces_[space]),
        placement_(placement),
        unpacked_(space_, placement),
        num_shards_(num_shards) {}

  void make_edges() {
    slices();
    to_partial();
    for (std::size_t slot = 0; slot < space_.slots.size(); ++slot) take_last_pieces(slot);
    if ((unpacked_.partial[0] | unpacked_.partial[1]) != 0) reductions();
    permutes();
  }

 private:
  bool may_stand(std::size_t piece, std::size_t slot) const {
    return !graph_.target_ || Placement::slot(graph_.target_->positions[piece]) == slot;
  }

  /// The end of a row of neighbouring parts, while pieces are appended.
  struct End {
    std::size_t slot;
    std::uint8_t count;
    std::int64_t product;
  };
  End end_of(std::size_t slot) const { return {slot, unpacked_.count[slot], unpacked_.product[slot]}; }
  bool append(Placement& placement, End& end, std::size_t piece) const {
    // A part that is cut to single elements goes on in the next part of its dimension.
    if (space_.slots[end.slot].continues && end.product == space_.slots[end.slot].extent &&
        unpacked_.count[end.slot + 1] == 0) {
      end = {end.slot + 1, 0, 1};
    }
    if (!may_stand(piece, end.slot)) return false;
    end.product *= space_.pieces[piece].size;
    if (end.product > space_.slots[end.slot].extent || space_.slots[end.slot].extent % end.product != 0) return false;
    placement.positions[piece] = Placement::in_slot(end.slot, end.count++);
    return true;
  }

  /// `divisor`: as for EdgeClass.
  void add(const Placement& target, CollectiveKind kind, std::uint16_t pieces, int from_slot, int to_slot,
           std::int64_t divisor) {
    const auto dimension = [&](int slot) {
      return slot < 0 ? std::int8_t{-1} : static_cast<std::int8_t>(space_.slots[slot].dimension);
    };
    graph_.edges_.push_back({graph_.node(space_index_, target), graph_.edge_class(kind, space_index_, pieces, divisor),
                             dimension(from_slot), dimension(to_slot)});
  }
  void add(const Placement& target, CollectiveKind kind, std::uint16_t pieces, int from_slot, int to_slot) {
    add(target, kind, pieces, from_slot, to_slot, num_shards_);
  }

  void slices() {
    for (std::size_t piece = 0; piece < space_.pieces.size(); ++piece) {
      if ((unpacked_.unused & bit(piece)) == 0) continue;
      for (const std::size_t slot : unpacked_.open()) {
        Placement next = placement_;
        End end = end_of(slot);
        if (append(next, end, piece)) {
          add(next, CollectiveKind::kSlice, bit(piece), -1, static_cast<int>(slot));
        }
      }
    }
  }

  void to_partial() {
    for (std::size_t r = 0; r < space_.reductions.size(); ++r) {
      if (unpacked_.partial[1 - r] != 0) continue;
      const auto become = [&](std::size_t piece, int from_slot) {
        const auto position = static_cast<Placement::Position>(Placement::kPartial + r);
        if (graph_.target_ && graph_.target_->positions[piece] != position) return;
        if (from_slot >= 0 && num_shards_ / space_.pieces[piece].size < graph_.least_shards_) return;
        Placement next = placement_;
        next.positions[piece] = position;
        add(next, CollectiveKind::kToPartial, bit(piece), from_slot, -1);
      };
      for (std::size_t piece = 0; piece < space_.pieces.size(); ++piece) {
        if ((unpacked_.unused & bit(piece)) != 0) become(piece, -1);
      }
      for (std::size_t slot = 0; slot < space_.slots.size(); ++slot) {
        if (unpacked_.count[slot] > 0) become(unpacked_.list[slot][unpacked_.count[slot] - 1], static_cast<int>(slot));
      }
    }
  }

  /// all_gather and all_to_all of the last one, two, ... pieces of a part, and of the full parts before it.
  void take_last_pieces(std::size_t slot) {
    Placement without = placement_;
    std::array<std::size_t, Placement::kMostPieces> taken{};  // minor to major
    std::size_t num_taken = 0;
    std::uint16_t pieces = 0;
    std::int64_t shards_left = num_shards_;
    for (std::size_t source = slot; true; --source) {
      for (std::size_t left = unpacked_.count[source]; left-- > 0;) {
        const std::size_t piece = unpacked_.list[source][left];
        if ((graph_.fixed_ & bit(piece)) != 0) return;
        taken[num_taken++] = piece;
        pieces |= bit(piece);
        shards_left /= space_.pieces[piece].size;
        without.positions[piece] = Placement::kUnused;
        if (shards_left >= graph_.least_shards_) {
          add(without, CollectiveKind::kAllGather, pieces, static_cast<int>(slot), -1, shards_left);
        }
        for (const std::size_t to : unpacked_.open()) {
          if (to >= source && to <= slot) continue;
          Placement next = without;
          End end = end_of(to);
          bool fits = true;
          for (std::size_t i = num_taken; fits && i-- > 0;) fits = append(next, end, taken[i]);
          if (fits) add(next, CollectiveKind::kAllToAll, pieces, static_cast<int>(slot), static_cast<int>(to));
        }
      }
      if (source == 0 || !space_.slots[source - 1].continues) break;
      if (unpacked_.product[source - 1] != space_.slots[source - 1].extent || unpacked_.count[source - 1] == 0) break;
    }
  }

  void reductions() {
    const std::uint16_t partial = unpacked_.partial[0] | unpacked_.partial[1];
    for (std::uint32_t some = partial; some != 0; some = (some - 1) & partial) {
      Placement next = placement_;
      for (std::size_t i = 0; i < space_.pieces.size(); ++i) {
        if ((some & bit(i)) != 0) next.positions[i] = Placement::kUnused;
      }
      add(next, CollectiveKind::kAllReduce, static_cast<std::uint16_t>(some), -1, -1);
    }
    for (const std::size_t slot : unpacked_.open()) scatter(placement_, end_of(slot), partial, 0, slot);
  }
  void scatter(const Placement& placement, const End& end, std::uint16_t left, std::uint16_t taken, std::size_t slot) {
    if (graph_.has_too_many_states()) return;
    for (std::size_t piece = 0; piece < space_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0) continue;
      Placement next = placement;
      End next_end = end;
      if (!append(next, next_end, piece)) continue;
      const std::uint16_t pieces = taken | bit(piece);
      add(next, CollectiveKind::kReduceScatter, pieces, -1, static_cast<int>(slot));
      scatter(next, next_end, left & static_cast<std::uint16_t>(~bit(piece)), pieces, slot);
    }
  }

  /// All states with the same number of shards along every slot: fills the slots one by one, the partial axes last.
  void permutes() {
    for (std::size_t slot = 0; slot < space_.slots.size(); ++slot) {
      std::int64_t product = 1;
      for (std::size_t i = 0; i < unpacked_.count[slot]; ++i) {
        weight_[unpacked_.list[slot][i]] = product;
        product *= space_.pieces[unpacked_.list[slot][i]].size;
      }
    }
    Placement next;
    const auto all = static_cast<std::uint16_t>((1u << space_.pieces.size()) - 1);
    fill(0, 0, 1, all, all, next);
  }
  /// `left`: pieces without a position yet; `moved`: those of which it is not known yet that they stay.
  void fill(std::size_t slot, std::uint8_t order, std::int64_t product, std::uint16_t left, std::uint16_t moved,
            Placement& next) {
    if (graph_.has_too_many_states()) return;
    while (slot < space_.slots.size() && product == unpacked_.product[slot]) {
      ++slot;
      order = 0;
      product = 1;
    }
    if (slot == space_.slots.size()) {
      const std::size_t r = unpacked_.partial[1] != 0 ? 1 : 0;
      std::int64_t summands = 1;
      for (std::size_t i = 0; i < space_.pieces.size(); ++i) {
        if ((unpacked_.partial[r] & bit(i)) != 0) summands *= space_.pieces[i].size;
      }
      fill_partial(0, r, summands, left, moved, next);
      return;
    }
    for (std::size_t piece = 0; piece < space_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0) continue;
      const std::int64_t next_product = product * space_.pieces[piece].size;
      if (unpacked_.product[slot] % next_product != 0) continue;
      next.positions[piece] = Placement::in_slot(slot, order);
      const bool serves = prefix_serves_target(slot, order, piece);
      if (serves) {
        // A piece with the same weight in the same slot keeps its coordinate.
        const Placement::Position at = placement_.positions[piece];
        const bool stays = Placement::is_in_slot(at) && Placement::slot(at) == slot && weight_[piece] == product;
        fill(slot, order + 1, next_product, left & static_cast<std::uint16_t>(~bit(piece)),
             stays ? moved & static_cast<std::uint16_t>(~bit(piece)) : moved, next);
      }
      next.positions[piece] = Placement::kUnused;
      if (serves && graph_.target_) return;
    }
  }
  /// Towards one target, a permute leaves each slot beginning as it ends; behind that, the first piece that fits will
  /// do.
  bool prefix_serves_target(std::size_t slot, std::uint8_t order, std::size_t piece) const {
    if (!graph_.target_) return true;
    const Placement::Position at = Placement::in_slot(slot, order);
    const auto& wanted = graph_.target_->positions;
    return wanted[piece] == at || std::find(wanted.begin(), wanted.end(), at) == wanted.end();
  }
  void fill_partial(std::size_t piece, std::size_t r, std::int64_t summands, std::uint16_t left, std::uint16_t moved,
                    Placement& next) {
    if (graph_.has_too_many_states()) return;
    if (summands == 1) {
      if (next != placement_) add_permute(next, moved);
      return;
    }
    for (; piece < space_.pieces.size(); ++piece) {
      if ((left & bit(piece)) == 0 || summands % space_.pieces[piece].size != 0) continue;
      next.positions[piece] = static_cast<Placement::Position>(Placement::kPartial + r);
      fill_partial(piece + 1, r, summands / space_.pieces[piece].size, left, moved, next);
      next.positions[piece] = Placement::kUnused;
    }
  }

  /// The group is spanned by the pieces that stand elsewhere than before.
  void add_permute(const Placement& next, std::uint16_t moved) {
    for (std::size_t i = 0; i < space_.pieces.size(); ++i) {
      if (!Placement::is_in_slot(next.positions[i]) && next.positions[i] == placement_.positions[i])
        moved &= static_cast<std::uint16_t>(~bit(i));
    }
    add(next, CollectiveKind::kCollectivePermute, moved, -1, -1);
  }

  RedistributionGraph& graph_;
  std::uint8_t space_index_;
  const LayoutSpace& space_;
  Placement placement_;
  Unpacked unpacked_;
  std::int64_t num_shards_;
  std::array<std::int64_t, Placement::kMostPieces> weight_;  // product of the pieces before it in its slot
};

RedistributionGraph::RedistributionGraph(std::vector<LayoutSpace> spaces, Shape shape,
                                         const std::optional<Ends>& only_ends)
    : spaces_(std::move(spaces)), shape_(std::move(shape)) {
  SHARDPLAN_CHECK(!spaces_.empty() && spaces_.size() <= (only_ends ? 1 : kMostSpaces));
  node_of_placement_.resize(spaces_.size());
  for (const LayoutSpace& space : spaces_) {
    SHARDPLAN_CHECK(space.pieces.size() <= Placement::kMostPieces && space.slots.size() <= Placement::kMostSlots);
  }
  if (!only_ends) return;
  const auto& [source, target, least_shards] = *only_ends;
  target_ = target;
  least_shards_ = least_shards;
  for (std::size_t slot = 0; slot < spaces_[0].slots.size(); ++slot) {
    for (std::size_t order = 0; order < Placement::kMostPieces; ++order) {
      const auto piece = std::find(source.positions.begin(), source.positions.end(), Placement::in_slot(slot, order));
      if (piece == source.positions.end() || target.positions[piece - source.positions.begin()] != *piece) break;
      fixed_ |= bit(piece - source.positions.begin());
    }
  }
}

bool RedistributionGraph::may_become_partial(std::size_t piece) const {
  if (!target_) return !spaces_[0].reductions.empty();
  const Placement::Position position = target_->positions[piece];
  return position != Placement::kUnused && !Placement::is_in_slot(position);
}

std::optional<std::uint32_t> RedistributionGraph::find(const TensorLayout& layout, const Shape& shape) {
  for (std::size_t space = 0; space < spaces_.size(); ++space) {
    const auto placement = spaces_[space].encode(layout, shape);
    if (placement) return node(static_cast<std::uint8_t>(space), *placement);
  }
  return std::nullopt;
}

std::uint32_t RedistributionGraph::node(std::uint8_t space, const Placement& placement) {
  const auto [id, is_new] = node_of_placement_[space].try_emplace(placement, static_cast<std::uint32_t>(nodes_.size()));
  if (!is_new) return id;
  placements_.resize(placements_.size() + spaces_.size());
  Placement* const placements = placements_.data() + id * spaces_.size();
  Node& node = nodes_.emplace_back();
  node.spaces = static_cast<std::uint8_t>(1u << space);
  placements[space] = placement;
  for (std::size_t i = 0; i < spaces_[space].pieces.size(); ++i) {
    if (Placement::is_in_slot(placement.positions[i])) node.num_shards *= spaces_[space].pieces[i].size;
  }
  for (std::size_t other = 0; other < spaces_.size(); ++other) {
    if (other == space) continue;
    if (const auto same = spaces_[other].encode(spaces_[space].decode(placement, shape_), shape_)) {
      node.spaces |= static_cast<std::uint8_t>(1u << other);
      placements[other] = *same;
      node_of_placement_[other].try_emplace(*same, id);
    }
  }
  return id;
}

std::uint32_t RedistributionGraph::edge_class(CollectiveKind kind, std::uint8_t space, std::uint16_t pieces,
                                              std::int64_t divisor) {
  // A mesh has fewer than 2^32 devices.
  const std::uint64_t key = static_cast<std::uint64_t>(divisor) << 32 | static_cast<std::uint64_t>(kind) << 24 |
                            static_cast<std::uint64_t>(space) << 16 | pieces;
  const auto [id, is_new] = class_of_key_.try_emplace(key, static_cast<std::uint32_t>(edge_classes_.size()));
  if (is_new) edge_classes_.push_back({kind, space, pieces, divisor});
  return id;
}

std::span<const RedistributionEdge> RedistributionGraph::edges(std::uint32_t state) {
  if (nodes_[state].num_edges == kNotMade) {
    nodes_[state].first_edge = edges_.size();
    for (std::uint8_t space = 0; space < spaces_.size(); ++space) {
      const Placement* const here = placement(state, space);
      if (here != nullptr) Expansion(*this, space, *here, nodes_[state].num_shards).make_edges();
    }
    nodes_[state].num_edges = static_cast<std::uint32_t>(edges_.size() - nodes_[state].first_edge);
  }
  return {edges_.data() + nodes_[state].first_edge, nodes_[state].num_edges};
}

TensorLayout RedistributionGraph::layout(std::uint32_t state, const Shape& shape) const {
  const std::size_t space = space_of(state);
  return spaces_[space].decode(*placement(state, space), shape);
}

bool RedistributionGraph::is_before(std::uint32_t a, std::uint32_t b) const {
  for (std::size_t space = 0; space < spaces_.size(); ++space) {
    const Placement* const x = placement(a, space);
    const Placement* const y = placement(b, space);
    if (x == nullptr && y == nullptr) continue;
    if (x == nullptr || y == nullptr) return x == nullptr;
    if (*x != *y) return *x < *y;
  }
  return false;
}

std::vector<AxisRef> RedistributionGraph::axes(std::uint8_t space, std::uint16_t pieces) const {
  std::vector<AxisRef> axes;
  for (std::size_t i = 0; i < spaces_[space].pieces.size(); ++i) {
    if ((pieces & bit(i)) != 0) axes.push_back(spaces_[space].pieces[i]);
  }
  return joined(axes);
}

std::vector<AxisRef> RedistributionGraph::ordered_axes(const PathEdge& edge) const {
  // A position sorts by slot and order; the side on which the pieces are in a slot has their order.
  const EdgeClass& group = edge_classes_[edge.edge.edge_class];
  const bool by_source = group.kind == CollectiveKind::kAllGather || group.kind == CollectiveKind::kAllToAll;
  const Placement& side = *placement(by_source ? edge.from : edge.edge.target, group.space);
  const std::vector<AxisRef>& pieces = spaces_[group.space].pieces;
  std::vector<std::pair<Placement::Position, AxisRef>> placed;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if ((group.pieces & bit(i)) != 0) placed.emplace_back(side.positions[i], pieces[i]);
  }
  const bool is_ordered =
      by_source || group.kind == CollectiveKind::kSlice || group.kind == CollectiveKind::kReduceScatter;
  if (is_ordered) std::sort(placed.begin(), placed.end());
  std::vector<AxisRef> axes;
  for (const auto& [position, axis] : placed) axes.push_back(axis);
  return joined(axes);
}

std::size_t RedistributionGraph::PlacementHash::operator()(const Placement& placement) const noexcept {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : placement.words()) {
    if (word == UINT64_MAX) break;  // mostly there are no more pieces
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

std::size_t RedistributionGraph::ClassHash::operator()(std::uint64_t key) const noexcept {
  return (key * 0x9e3779b97f4a7c15) >> 32;
}

}  // namespace shardplan
