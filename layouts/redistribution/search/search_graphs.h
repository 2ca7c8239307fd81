#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "layouts/device_mesh.h"
#include "layouts/redistribution/search/common_refinement.h"
#include "layouts/redistribution/search/edge_costs.h"
#include "layouts/redistribution/search/pairwise_times.h"
#include "layouts/redistribution/search/part_borders.h"
#include "layouts/redistribution/search/redistribution_graph.h"
#include "layouts/redistribution/search/shortest_paths.h"

namespace shardplan {

/// A graph, what its edges cost and the times between its states.
struct SearchGraph {
  SearchGraph(std::vector<LayoutSpace> spaces, Shape shape, const std::optional<RedistributionGraph::Ends>& only_ends,
              bool bounded_memory)
      : graph(std::move(spaces), std::move(shape), only_ends), times(graph, bounded_memory) {}

  EdgeCosts& costs(const CollectiveCosts& collective_costs, Bytes tensor_bytes) {
    return costs_of_size.try_emplace(tensor_bytes, graph, collective_costs, tensor_bytes).first->second;
  }

  RedistributionGraph graph;
  PairwiseTimes times;
  std::map<Bytes, EdgeCosts> costs_of_size;  // by bytes of the whole tensor
};

/// One pair of layouts as states of a graph.
struct SearchRoute {
  SearchGraph* graph = nullptr;
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::optional<Refinement> refinement;  // the graph's finer pieces; none: it has the caller's
  bool is_large = false;                 // made for this one target, and searched only in part
};

/// The route of a pair in a graph; nothing if one of the two is not a state of it.
std::optional<SearchRoute> route_in(SearchGraph& graph, const TensorLayout& from, const TensorLayout& to,
                                    const Shape& shape);
/// A pair of which both are in the space, as the ends of a graph that serves no other.
RedistributionGraph::Ends ends_in(const LayoutSpace& space, const TensorLayout& from, const TensorLayout& to,
                                  const Shape& shape, const PathBound& bound);

/// Whether a graph may have this space at all.
bool can_be_searched(const LayoutSpace& space);

/// The graphs in which redistributions on one mesh are searched, made when first needed and kept, and the searches in
/// them, of which a limited number is kept. Which graph a pair of layouts gets depends on the pair alone.
class SearchGraphs {
 public:
  /// `pieces` and `bounded_memory` as in RedistributionOptions.
  SearchGraphs(DeviceMesh mesh, std::vector<AxisRef> pieces, bool bounded_memory)
      : mesh_(std::move(mesh)), pieces_(std::move(pieces)), bounded_memory_(bounded_memory) {}

  const DeviceMesh& mesh() const { return mesh_; }
  /// No state on the way from one layout to the other has fewer shards than both, if memory is bounded.
  PathBound bound(const TensorLayout& from, const TensorLayout& to) const;

  /// Canonical layouts. Throws InputError where they cut the mesh or the tensor into too many pieces.
  SearchRoute route(const TensorLayout& from, const TensorLayout& to, const Shape& shape);
  /// The graphs of layouts that place whole `pieces` in parts that end at these borders. The route of a pair goes
  /// through the first of them in which both layouts are.
  std::vector<SearchGraph*> graphs_of_pieces(const PartBorders& from, const PartBorders& to, const Shape& shape);

  /// The search from a route's source, continued or new; valid until the next call.
  ShortestPaths& paths(const SearchRoute& route, const PathBound& bound, EdgeCosts& costs);
  /// The PairwiseTimes of all graphs.
  void forget_times();

 private:
  /// What a graph depends on. Shape and ends only where they matter.
  struct GraphKey {
    std::vector<LayoutSpace> spaces;
    Shape shape;
    std::optional<RedistributionGraph::Ends> only_ends;

    auto operator<=>(const GraphKey&) const = default;
  };
  struct SearchKey {
    const SearchGraph* graph = nullptr;
    Bytes tensor_bytes = 0;
    std::uint32_t source = 0;
    PathBound bound;

    bool operator==(const SearchKey&) const = default;
  };
  struct SearchKeyHash {
    std::size_t operator()(const SearchKey& key) const noexcept;
  };

  SearchGraph& graph_of(GraphKey key);

  DeviceMesh mesh_;
  std::vector<AxisRef> pieces_;
  bool bounded_memory_;
  std::map<GraphKey, std::unique_ptr<SearchGraph>> graphs_;
  std::unordered_map<SearchKey, ShortestPaths, SearchKeyHash> searches_;  // never iterated over
};

}  // namespace shardplan
