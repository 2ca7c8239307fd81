#include "layouts/redistribution/search/search_graphs.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/random.h"

namespace shardplan {
namespace {

constexpr std::int64_t kManyStates = 700;   // of axes cut to primes
constexpr std::int64_t kManyOfWhole = 400;  // of axes as the ends cut them
constexpr std::size_t kMostSearches = 2048;

}  // namespace

std::optional<SearchRoute> route_in(SearchGraph& graph, const TensorLayout& from, const TensorLayout& to,
                                    const Shape& shape) {
  const auto source = graph.graph.find(from, shape);
  if (!source) return std::nullopt;
  const auto target = graph.graph.find(to, shape);
  if (!target) return std::nullopt;
  SearchRoute route;
  route.graph = &graph;
  route.source = *source;
  route.target = *target;
  return route;
}

RedistributionGraph::Ends ends_in(const LayoutSpace& space, const TensorLayout& from, const TensorLayout& to,
                                  const Shape& shape, const PathBound& bound) {
  return {*space.encode(from, shape), *space.encode(to, shape), bound.least_shards};
}

bool can_be_searched(const LayoutSpace& space) {
  return space.pieces.size() <= Placement::kMostPieces && space.slots.size() <= Placement::kMostSlots;
}

PathBound SearchGraphs::bound(const TensorLayout& from, const TensorLayout& to) const {
  PathBound bound;
  if (bounded_memory_) bound.least_shards = std::min(num_shards(from), num_shards(to));
  return bound;
}

SearchGraph& SearchGraphs::graph_of(GraphKey key) {
  auto [entry, is_new] = graphs_.try_emplace(std::move(key));
  if (is_new) {
    const GraphKey& made = entry->first;
    entry->second = std::make_unique<SearchGraph>(made.spaces, made.shape, made.only_ends, bounded_memory_);
  }
  return *entry->second;
}

std::vector<SearchGraph*> SearchGraphs::graphs_of_pieces(const PartBorders& from, const PartBorders& to,
                                                         const Shape& shape) {
  std::vector<SearchGraph*> result;
  if (pieces_.empty() || pieces_.size() > Placement::kMostPieces) return result;
  const auto add = [&](GraphKey key) {
    if (!std::all_of(key.spaces.begin(), key.spaces.end(), can_be_searched)) return;
    result.push_back(&graph_of(std::move(key)));
  };
  const auto space = [&](const PartBorders& borders) {
    return space_of_pieces(pieces_, borders, shape, mesh_.num_devices());
  };
  if (const std::optional<PartBorders> both = joined_borders(from, to)) add({{space(*both)}, {}, {}});
  if (from != to) add({{space(from), space(to)}, shape, {}});
  return result;
}

SearchRoute SearchGraphs::route(const TensorLayout& from, const TensorLayout& to, const Shape& shape) {
  for (SearchGraph* const graph : graphs_of_pieces(part_borders(from, shape), part_borders(to, shape), shape)) {
    if (const std::optional<SearchRoute> route = route_in(*graph, from, to, shape)) return *route;
  }
  GraphKey key;
  Refinement refinement = Refinement::kFull;
  bool is_large = false;
  for (const Refinement next :
       {Refinement::kFull, Refinement::kPrime, Refinement::kEnds, Refinement::kOneSpare, Refinement::kMinimal}) {
    refinement = next;
    key.spaces = common_spaces(from, to, mesh_, shape, refinement);
    std::int64_t states = 0;
    for (const LayoutSpace& space : key.spaces) states += num_placements(space);
    const bool fits = std::all_of(key.spaces.begin(), key.spaces.end(), can_be_searched);
    if (fits && states <= (refinement <= Refinement::kPrime ? kManyStates : kManyOfWhole)) break;
    if (refinement != Refinement::kMinimal) continue;
    if (!fits) {
      throw InputError({},
                       "from {} to {}: cuts the mesh into more than {} pieces, or the tensor into more than {} parts",
                       to_string(from, mesh_), to_string(to, mesh_), Placement::kMostPieces, Placement::kMostSlots);
    }
    is_large = true;
    if (key.spaces.size() == 1) {
      key.only_ends = ends_in(key.spaces[0], from, to, shape, bound(from, to));
    }
  }
  if (key.spaces.size() > 1) key.shape = shape;
  std::optional<SearchRoute> route = route_in(graph_of(std::move(key)), from, to, shape);
  SHARDPLAN_CHECK(route.has_value());
  route->refinement = refinement;
  route->is_large = is_large;
  return *route;
}

ShortestPaths& SearchGraphs::paths(const SearchRoute& route, const PathBound& bound, EdgeCosts& costs) {
  const SearchKey key = {route.graph, costs.tensor_bytes(), route.source, bound};
  const auto known = searches_.find(key);
  if (known != searches_.end()) return known->second;
  if (searches_.size() == kMostSearches) searches_.clear();
  return searches_.try_emplace(key, route.graph->graph, costs, route.source, bound).first->second;
}

std::size_t SearchGraphs::SearchKeyHash::operator()(const SearchKey& key) const noexcept {
  std::uint64_t value = mix(std::bit_cast<std::uintptr_t>(key.graph)) ^ static_cast<std::uint64_t>(key.tensor_bytes);
  value = mix(value ^ key.source) ^ static_cast<std::uint64_t>(key.bound.least_shards);
  return mix(mix(value) ^ static_cast<std::uint64_t>(key.bound.most_peak));
}

void SearchGraphs::forget_times() {
  for (auto& [key, graph] : graphs_) graph->times.forget();
}

}  // namespace shardplan
