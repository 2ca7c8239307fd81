#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_id_map.h"
#include "layouts/redistribution/redistribution.h"
#include "layouts/redistribution/search/layout_space.h"

namespace shardplan {

/// What determines the price of a step, whatever the tensor: the group and its share of the tensor.
struct RedistributionPrice {
  CollectiveKind kind = CollectiveKind::kSlice;
  std::uint8_t chart = 0;
  std::uint16_t pieces = 0;  // of the group: one bit a piece of the chart
  std::int64_t group_size = 1;
  std::int64_t divisor =
      1;  // the whole tensor divided by this is one device's share before (all_gather: after) the step
};

/// One collective (or local step) between two states.
struct RedistributionEdge {
  std::uint32_t target = 0;
  std::uint32_t price = 0;    // position in RedistributionGraph::prices
  std::int8_t from_dim = -1;  // -1: none
  std::int8_t to_dim = -1;
};

/// The states that layouts can take over some charts and the steps between them, grown on demand: edges are made when a
/// search first leaves a state, and stay for all later searches, since they depend on no byte count.
///
/// More charts than one are needed only if the two ends cut an axis or a dimension in ways that have no common
/// refinement (6 as 2 x 3 and as 3 x 2); a state that several can say is one state, and has the edges of all.
class RedistributionGraph {
 public:
  static constexpr std::size_t kMostCharts = 4;
  /// For one source and target in a single chart.
  struct Ends {
    PieceState source;
    PieceState target;
    std::int64_t least_shards = 1;  // of any state

    auto operator<=>(const Ends&) const = default;
  };
  /// With `only_ends` the graph serves one source and target: pieces move only to where they end, leading pieces that
  /// both have in common stay, and after a permute each part begins as it ends.
  RedistributionGraph(std::vector<PieceChart> charts, Shape shape, const std::optional<Ends>& only_ends = {});

  /// Nothing if no chart can say it. `shape` here and below is any with the charts' bins.
  std::optional<std::uint32_t> find(const TensorLayout& layout, const Shape& shape);
  /// Valid until the edges of another state are asked for.
  std::span<const RedistributionEdge> edges(std::uint32_t state);
  TensorLayout layout(std::uint32_t state, const Shape& shape) const;
  /// In how many pieces the tensor is cut: a shard is the tensor divided by this.
  std::int64_t num_shards(std::uint32_t state) const { return nodes_[state].num_shards; }
  /// A total order of states that does not depend on when they were first met.
  bool is_before(std::uint32_t a, std::uint32_t b) const;
  std::size_t num_states() const { return nodes_.size(); }

  const std::vector<PieceChart>& charts() const { return charts_; }
  /// Where a chart's pieces stand; null if it cannot say the state. At least one of the charts can. Valid until the
  /// next state is met.
  const PieceState* state(std::uint32_t state, std::size_t chart) const {
    return (nodes_[state].charts & 1u << chart) != 0 ? &states_[state * charts_.size() + chart] : nullptr;
  }
  /// The first chart that can.
  std::size_t chart_of(std::uint32_t state) const {
    return static_cast<std::size_t>(std::countr_zero(nodes_[state].charts));
  }
  bool has_only_ends() const { return target_state_.has_value(); }
  /// No step moves it.
  bool stays_in_bin(std::size_t piece) const { return (fixed_ & 1u << piece) != 0; }
  bool may_become_partial(std::size_t piece) const;

  const std::vector<RedistributionPrice>& prices() const { return prices_; }
  /// The position in `prices` of what such a step would cost.
  std::uint32_t price(CollectiveKind kind, std::uint8_t chart, std::uint16_t pieces, std::int64_t divisor);
  /// The pieces of an edge or a price, in mesh order, joined.
  std::vector<AxisRef> axes(std::uint8_t chart, std::uint16_t pieces) const;
  /// The axes in the order in which the pieces are cut or put together.
  std::vector<AxisRef> ordered_axes(std::uint32_t from, const RedistributionEdge& edge) const;

 private:
  struct Node {
    std::uint8_t charts = 0;  // that can say it, one bit each
    std::int64_t num_shards = 1;
    std::size_t first_edge = 0;
    std::uint32_t num_edges = kNotMade;
  };
  static constexpr std::uint32_t kNotMade = UINT32_MAX;
  class Expansion;

  std::uint32_t node(std::uint8_t chart, const PieceState& state);

  struct StateHash {
    std::size_t operator()(const PieceState& state) const noexcept;
  };
  struct PriceHash {
    std::size_t operator()(std::uint64_t key) const noexcept;
  };

  std::vector<PieceChart> charts_;
  Shape shape_;
  std::optional<PieceState> target_state_;  // set if it is the only one
  std::int64_t least_shards_ = 1;
  std::uint16_t fixed_ = 0;  // pieces that stay
  std::vector<Node> nodes_;
  std::vector<PieceState> states_;                               // of each node, by chart
  std::vector<RedistributionEdge> edges_;                        // those of a node lie together
  std::vector<NumberMap<PieceState, StateHash>> node_of_state_;  // by chart
  std::vector<RedistributionPrice> prices_;
  NumberMap<std::uint64_t, PriceHash> price_of_key_;
};

}  // namespace shardplan
