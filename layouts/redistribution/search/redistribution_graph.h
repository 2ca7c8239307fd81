#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_id_map.h"
#include "layouts/collective.h"
#include "layouts/redistribution/search/layout_space.h"

namespace shardplan {

/// What determines the cost of a step, whatever the tensor: the group and its share of the tensor.
struct EdgeClass {
  CollectiveKind kind = CollectiveKind::kSlice;
  std::uint8_t space = 0;
  std::uint16_t pieces = 0;  // the group's, one bit for each piece of the space
  /// The whole tensor divided by this is one device's share before (all_gather: after) the step.
  std::int64_t divisor = 1;
};

/// One collective (or local step) between two states.
struct RedistributionEdge {
  std::uint32_t target = 0;
  std::uint32_t edge_class = 0;  // position in RedistributionGraph::edge_classes
  std::int8_t from_dim = -1;     // -1: none
  std::int8_t to_dim = -1;
};

/// An edge and the state it leaves.
struct PathEdge {
  std::uint32_t from = 0;
  RedistributionEdge edge;
};
using Path = std::vector<PathEdge>;

/// The layouts of one or more spaces as states and the steps between them, grown on demand: edges are made when a
/// search first leaves a state, and stay for all later searches, since they depend on no byte count.
///
/// More spaces than one are needed only if the two ends cut an axis or a dimension in ways that have no common
/// refinement (6 as 2 x 3 and as 3 x 2); a layout that is in several of them is one state, with the edges of all.
class RedistributionGraph {
 public:
  static constexpr std::size_t kMostSpaces = 4;
  /// For one source and target in a single space.
  struct Ends {
    Placement source;
    Placement target;
    std::int64_t least_shards = 1;  // the fewest that any state has

    auto operator<=>(const Ends&) const = default;
  };
  /// With `only_ends` the graph serves one source and target: pieces move only to where they end, leading pieces that
  /// both have in common stay, and after a permute each slot begins as it ends.
  RedistributionGraph(std::vector<LayoutSpace> spaces, Shape shape, const std::optional<Ends>& only_ends = {});

  /// Nothing if the layout is in no space. `shape` here and below is any with the spaces' slots.
  std::optional<std::uint32_t> find(const TensorLayout& layout, const Shape& shape);
  /// Valid until the edges of another state are requested.
  std::span<const RedistributionEdge> edges(std::uint32_t state);
  TensorLayout layout(std::uint32_t state, const Shape& shape) const;
  /// In how many pieces the tensor is cut: a shard is the tensor divided by this.
  std::int64_t num_shards(std::uint32_t state) const { return nodes_[state].num_shards; }
  /// A total order of states that does not depend on when they were first met.
  bool is_before(std::uint32_t a, std::uint32_t b) const;
  std::size_t num_states() const { return nodes_.size(); }

  /// With more states than `most` no more are made, and every search in the graph gives up.
  void limit_states(std::size_t most) { most_states_ = most; }
  bool has_too_many_states() const { return nodes_.size() > most_states_; }

  const std::vector<LayoutSpace>& spaces() const { return spaces_; }
  /// Where a space's pieces stand; null if the state is not in it. It is in at least one. Valid until the next state is
  /// met.
  const Placement* placement(std::uint32_t state, std::size_t space) const {
    return (nodes_[state].spaces & 1u << space) != 0 ? &placements_[state * spaces_.size() + space] : nullptr;
  }
  /// The first space that the state is in.
  std::size_t space_of(std::uint32_t state) const {
    return static_cast<std::size_t>(std::countr_zero(nodes_[state].spaces));
  }
  bool has_only_ends() const { return target_.has_value(); }
  /// No step moves it.
  bool stays_in_slot(std::size_t piece) const { return (fixed_ & 1u << piece) != 0; }
  bool may_become_partial(std::size_t piece) const;

  const std::vector<EdgeClass>& edge_classes() const { return edge_classes_; }
  /// The position in `edge_classes` of such a step.
  std::uint32_t edge_class(CollectiveKind kind, std::uint8_t space, std::uint16_t pieces, std::int64_t divisor);
  /// The pieces of an edge class, in mesh order, joined.
  std::vector<AxisRef> axes(std::uint8_t space, std::uint16_t pieces) const;
  /// The axes in the order in which the shards are cut or put together.
  std::vector<AxisRef> ordered_axes(const PathEdge& edge) const;

 private:
  struct Node {
    std::uint8_t spaces = 0;  // that it is in, one bit each
    std::int64_t num_shards = 1;
    std::size_t first_edge = 0;
    std::uint32_t num_edges = kNotMade;
  };
  static constexpr std::uint32_t kNotMade = UINT32_MAX;
  class Expansion;

  std::uint32_t node(std::uint8_t space, const Placement& placement);

  struct PlacementHash {
    std::size_t operator()(const Placement& placement) const noexcept;
  };
  struct ClassHash {
    std::size_t operator()(std::uint64_t key) const noexcept;
  };

  std::vector<LayoutSpace> spaces_;
  Shape shape_;
  std::optional<Placement> target_;  // set if it is the only one
  std::int64_t least_shards_ = 1;
  std::uint16_t fixed_ = 0;  // pieces that stay
  std::size_t most_states_ = SIZE_MAX;
  std::vector<Node> nodes_;
  std::vector<Placement> placements_;                                   // each node's, by space
  std::vector<RedistributionEdge> edges_;                               // those of a node lie together
  std::vector<FlatIdMap<Placement, PlacementHash>> node_of_placement_;  // by space
  std::vector<EdgeClass> edge_classes_;
  FlatIdMap<std::uint64_t, ClassHash> class_of_key_;
};

}  // namespace shardplan
