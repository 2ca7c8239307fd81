// Shortest paths over layouts.
//
// The states and steps are those of RedistributionGraph, the algorithm is Dijkstra's. What keeps it small is the choice
// of the pieces into which axes are cut and of the digits of dimensions in which they may stand (common_refinement.h):
//
//   - Up to kManyStates states, axes are cut to primes and dimensions into all digits that those can cut. All pairs of
//     layouts of all tensors of like divisibility share one graph, one search answers for all targets of a source, and
//     cost is a metric by construction: a path through any layout is a path.
//   - Beyond, digits are those that the two ends cut; then axes are cut only where the ends cut a dimension at
//     different products; then an axis can be parked, while another is gathered, in one dimension only; then axes that
//     neither end uses are left out.
//   - Beyond that the search is made for its one target: pieces move only to where they end, leading pieces that both
//     ends have in common stay, and after a permute each part begins as it ends. It looks only for what beats
//     MindSpore's greedy order, and gives up in its favour after kMostSettled states; that alone may exceed the bound.
//
// A slower path within the memory bound is preferred to a faster one above it. The bound is a least number of shards,
// so the searches of one source differ only by the few products that shards can have.

#include "layouts/redistribution.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/integer.h"
#include "base/random.h"
#include "layouts/common_refinement.h"
#include "layouts/greedy_redistribution.h"
#include "layouts/index_digits.h"
#include "layouts/redistribution_graph.h"
#include "layouts/shortest_paths.h"

namespace shardplan {
namespace {

constexpr std::int64_t kManyStates = 400;
constexpr std::size_t kMostSearches = 2048;
constexpr std::size_t kMostSettled = 400;  // of a search for one target

/// What a graph depends on. Shape and target only where they matter.
struct GraphKey {
  std::vector<PieceChart> charts;
  Shape shape;
  std::optional<std::pair<PieceState, PieceState>> ends;

  auto operator<=>(const GraphKey&) const = default;
};

struct PlanKey {
  TensorLayout from;
  TensorLayout to;
  Shape shape;
  Bytes element_bytes = 0;

  bool operator==(const PlanKey&) const = default;
};

struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const noexcept {
    std::uint64_t value = mix(std::hash<TensorLayout>()(key.from)) ^ std::hash<TensorLayout>()(key.to);
    for (const std::int64_t extent : key.shape) value = mix(value ^ static_cast<std::uint64_t>(extent));
    return mix(value ^ static_cast<std::uint64_t>(key.element_bytes));
  }
};

}  // namespace

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kSlice:
      return "slice";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kCollectivePermute:
      return "collective_permute";
    case CollectiveKind::kToPartial:
      return "to_partial";
  }
  return "?";
}

std::int64_t num_shards(const TensorLayout& layout) {
  std::int64_t shards = 1;
  for (const DimensionLayout& dimension : layout.dimensions) shards *= dimension.num_pieces();
  return shards;
}

Bytes sent_bytes(CollectiveKind kind, std::int64_t group_size, Bytes group_bytes) {
  const std::int64_t p = group_size;
  switch (kind) {
    case CollectiveKind::kSlice:
    case CollectiveKind::kToPartial:
      return 0;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return group_bytes / p * (p - 1);
    case CollectiveKind::kAllReduce:
      return multiply_divide(2 * (p - 1), group_bytes, p);
    case CollectiveKind::kAllToAll:
      return group_bytes / p / p * (p - 1);
    case CollectiveKind::kCollectivePermute:
      return group_bytes / p;
  }
  return 0;
}

void set_price(CollectiveStep& step, Bytes tensor_bytes, const CollectiveCosts& costs) {
  const std::int64_t p = num_pieces(step.axes);
  Bytes group_bytes = tensor_bytes / num_shards(step.kind == CollectiveKind::kAllGather ? step.after : step.before);
  if (step.kind == CollectiveKind::kAllToAll || step.kind == CollectiveKind::kCollectivePermute) group_bytes *= p;
  step.sent = sent_bytes(step.kind, p, group_bytes);
  std::vector<AxisRef> axes = step.axes;
  std::sort(axes.begin(), axes.end());
  const bool is_free = step.kind == CollectiveKind::kSlice || step.kind == CollectiveKind::kToPartial;
  step.time = is_free ? 0 : costs.time(step.kind, joined(axes), group_bytes);
}

void add_up(Redistribution& redistribution, Bytes tensor_bytes) {
  redistribution.time = 0;
  redistribution.sent = 0;
  redistribution.peak = tensor_bytes / num_shards(redistribution.from);
  for (const CollectiveStep& step : redistribution.steps) {
    redistribution.time += step.time;
    redistribution.sent += step.sent;
    redistribution.peak =
        std::max(redistribution.peak, tensor_bytes / num_shards(step.before) + tensor_bytes / num_shards(step.after));
  }
}

struct RedistributionPlanner::State {
  struct Graph {
    RedistributionGraph graph;
    std::map<Bytes, PriceList> prices;  // by bytes of the whole tensor
  };
  struct SearchKey {
    const Graph* graph = nullptr;
    Bytes tensor_bytes = 0;
    std::uint32_t source = 0;
    PathBound bound;

    bool operator==(const SearchKey&) const = default;
  };
  struct SearchKeyHash {
    std::size_t operator()(const SearchKey& key) const noexcept {
      std::uint64_t value =
          mix(std::bit_cast<std::uintptr_t>(key.graph)) ^ static_cast<std::uint64_t>(key.tensor_bytes);
      value = mix(value ^ key.source) ^ static_cast<std::uint64_t>(key.bound.least_shards);
      return mix(mix(value) ^ static_cast<std::uint64_t>(key.bound.most_peak));
    }
  };
  /// One question, with all that is needed to ask it.
  struct Route {
    Graph* graph = nullptr;
    Bytes tensor_bytes = 0;
    std::uint32_t source = 0;
    std::uint32_t target = 0;
    bool is_large = false;  // searched for this one target, as far as is reasonable
  };

  State(DeviceMesh mesh_, std::shared_ptr<const CollectiveCosts> costs_, RedistributionOptions options_)
      : mesh(std::move(mesh_)), costs(std::move(costs_)), options(options_) {}

  Graph& graph_of(GraphKey key);
  Route route(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes);
  /// By the asker's own pieces; false if they cannot say both ends.
  bool plain_route(Route& route, const TensorLayout& from, const TensorLayout& to, const Shape& shape);
  ShortestPaths& paths(const Route& route, const PathBound& bound);
  ShortestPaths* best_paths(const Route& route, const PlanKey& key);
  Redistribution greedy_plan(const PlanKey& key);
  Redistribution make_plan(const PlanKey& key);

  DeviceMesh mesh;
  std::shared_ptr<const CollectiveCosts> costs;
  RedistributionOptions options;
  std::map<GraphKey, std::unique_ptr<Graph>> graphs;
  struct PlainGraph {
    PieceChart chart;
    Graph* graph = nullptr;
  };
  std::map<Shape, PlainGraph> plain_graphs;
  std::unordered_map<SearchKey, ShortestPaths, SearchKeyHash> searches;  // forgotten when there are too many
  std::unordered_map<PlanKey, std::unique_ptr<Redistribution>, PlanKeyHash> plans;
};

RedistributionPlanner::State::Graph& RedistributionPlanner::State::graph_of(GraphKey key) {
  auto [entry, is_new] = graphs.try_emplace(std::move(key));
  if (is_new) {
    const GraphKey& made = entry->first;
    entry->second = std::make_unique<Graph>(Graph{RedistributionGraph(made.charts, made.shape, made.ends), {}});
  }
  return *entry->second;
}

bool RedistributionPlanner::State::plain_route(Route& route, const TensorLayout& from, const TensorLayout& to,
                                               const Shape& shape) {
  const auto is_foreign = [](const TensorLayout& layout) {
    return !layout.partial.empty() && layout.reduction != Reduction::kSum;
  };
  if (options.pieces.empty() || is_foreign(from) || is_foreign(to)) return false;
  PlainGraph& plain = plain_graphs[shape];
  if (plain.graph == nullptr) {
    plain.chart.pieces = options.pieces;
    plain.chart.reductions = {Reduction::kSum};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t divisor = std::gcd(shape[d], mesh.num_devices());
      if (divisor > 1) plain.chart.bins.push_back({d, divisor, false});
    }
    GraphKey key;
    key.charts = {plain.chart};
    plain.graph = &graph_of(std::move(key));
  }
  const std::optional<PieceState> source = plain.chart.encode(from, shape);
  const std::optional<PieceState> target = plain.chart.encode(to, shape);
  if (!source || !target) return false;
  const auto source_state = plain.graph->graph.find(from, shape);
  const auto target_state = plain.graph->graph.find(to, shape);
  if (!source_state || !target_state) return false;
  route.graph = plain.graph;
  route.source = *source_state;
  route.target = *target_state;
  return true;
}

RedistributionPlanner::State::Route RedistributionPlanner::State::route(const TensorLayout& from,
                                                                        const TensorLayout& to, const Shape& shape,
                                                                        Bytes element_bytes) {
  Route route;
  route.tensor_bytes = element_bytes;
  for (const std::int64_t extent : shape) route.tensor_bytes *= extent;
  if (plain_route(route, from, to, shape)) return route;
  GraphKey key;
  for (const Detail detail : {Detail::kAll, Detail::kPrimes, Detail::kEnds, Detail::kUsed, Detail::kMoved}) {
    key.charts = common_charts(from, to, mesh, shape, detail);
    std::int64_t states = 0;
    bool fits = true;
    for (const PieceChart& chart : key.charts) {
      states += num_states(chart);
      fits = fits && chart.pieces.size() <= PieceState::kMostPieces && chart.bins.size() <= PieceState::kMostBins;
    }
    if (fits && states <= kManyStates) break;
    if (detail != Detail::kMoved) continue;
    if (!fits) {
      throw InputError({},
                       "from {} to {}: cuts the mesh into more than {} pieces, or the tensor into more than {} parts",
                       to_string(from, mesh), to_string(to, mesh), PieceState::kMostPieces, PieceState::kMostBins);
    }
    route.is_large = true;
    if (key.charts.size() == 1) {
      key.ends.emplace(*key.charts[0].encode(from, shape), *key.charts[0].encode(to, shape));
    }
  }
  if (key.charts.size() > 1) key.shape = shape;
  route.graph = &graph_of(std::move(key));
  const auto source = route.graph->graph.find(from, shape);
  const auto target = route.graph->graph.find(to, shape);
  SHARDPLAN_CHECK(source && target);
  route.source = *source;
  route.target = *target;
  return route;
}

ShortestPaths& RedistributionPlanner::State::paths(const Route& route, const PathBound& bound) {
  const SearchKey key = {route.graph, route.tensor_bytes, route.source, bound};
  const auto known = searches.find(key);
  if (known != searches.end()) return known->second;
  if (searches.size() == kMostSearches) searches.clear();
  PriceList& prices =
      route.graph->prices.try_emplace(route.tensor_bytes, route.graph->graph, *costs, route.tensor_bytes).first->second;
  return searches.try_emplace(key, route.graph->graph, prices, route.source, bound).first->second;
}

/// Nothing if a large search gave up.
ShortestPaths* RedistributionPlanner::State::best_paths(const Route& route, const PlanKey& key) {
  RedistributionGraph& graph = route.graph->graph;
  PathBound bound;
  if (options.bounded_memory) {
    bound.least_shards = std::min(graph.num_shards(route.source), graph.num_shards(route.target));
  }
  if (route.is_large) {
    bound.most_time = greedy_plan(key).time;
    bound.most_settled = kMostSettled;
    ShortestPaths& within = paths(route, bound);
    return within.time(route.target) ? &within : nullptr;
  }
  ShortestPaths& within = paths(route, bound);
  if (within.time(route.target)) return &within;
  const std::optional<Bytes> peak = least_peak(graph, route.tensor_bytes, route.source, route.target);
  SHARDPLAN_CHECK(peak.has_value());
  PathBound raised;
  raised.most_peak = *peak;
  ShortestPaths& above = paths(route, raised);
  SHARDPLAN_CHECK(above.time(route.target).has_value());
  return &above;
}

/// What is partial is reduced first and what becomes partial is so last; in between MindSpore's order.
Redistribution RedistributionPlanner::State::greedy_plan(const PlanKey& key) {
  Redistribution plan;
  plan.from = key.from;
  plan.to = key.to;
  Bytes tensor_bytes = key.element_bytes;
  for (const std::int64_t extent : key.shape) tensor_bytes *= extent;
  const auto without_partial = [](TensorLayout layout) {
    layout.partial.clear();
    layout.reduction = Reduction::kSum;
    return layout;
  };
  const auto add = [&](CollectiveKind kind, const TensorLayout& before, const TensorLayout& after,
                       const TensorLayout& partial) {
    if (partial.partial.empty()) return;
    CollectiveStep step;
    step.kind = kind;
    step.axes = partial.partial;
    step.reduction = partial.reduction;
    step.before = before;
    step.after = after;
    step.local_shape = local_shape(after, key.shape);
    set_price(step, tensor_bytes, *costs);
    plan.steps.push_back(std::move(step));
  };
  const TensorLayout reduced = without_partial(key.from);
  const TensorLayout whole = without_partial(key.to);
  add(CollectiveKind::kAllReduce, key.from, reduced, key.from);
  Redistribution middle = *greedy_redistribution(reduced, whole, key.shape, key.element_bytes, mesh, *costs);
  std::move(middle.steps.begin(), middle.steps.end(), std::back_inserter(plan.steps));
  add(CollectiveKind::kToPartial, whole, key.to, key.to);
  add_up(plan, tensor_bytes);
  return plan;
}

Redistribution RedistributionPlanner::State::make_plan(const PlanKey& key) {
  Redistribution plan;
  plan.from = key.from;
  plan.to = key.to;
  const Route asked = route(key.from, key.to, key.shape, key.element_bytes);
  const RedistributionGraph& graph = asked.graph->graph;
  PriceList& prices =
      asked.graph->prices.try_emplace(asked.tensor_bytes, graph, *costs, asked.tensor_bytes).first->second;
  ShortestPaths* const best = best_paths(asked, key);
  if (best == nullptr) return greedy_plan(key);
  for (const ShortestPaths::Hop& hop : best->path(asked.target)) {
    CollectiveStep step;
    step.kind = hop.edge.kind;
    step.axes = graph.ordered_axes(hop.from, hop.edge);
    if (hop.edge.from_dim >= 0) step.from_dim = static_cast<std::size_t>(hop.edge.from_dim);
    if (hop.edge.to_dim >= 0) step.to_dim = static_cast<std::size_t>(hop.edge.to_dim);
    step.before = graph.layout(hop.from, key.shape);
    step.after = graph.layout(hop.edge.target, key.shape);
    step.reduction = step.kind == CollectiveKind::kToPartial ? step.after.reduction : step.before.reduction;
    step.local_shape = local_shape(step.after, key.shape);
    step.sent = prices[hop.edge.price].sent;
    step.time = prices[hop.edge.price].time;
    CollectiveStep* last = plan.steps.empty() ? nullptr : &plan.steps.back();
    const bool joins =
        last != nullptr && last->kind == step.kind && last->from_dim == step.from_dim && last->to_dim == step.to_dim &&
        (step.kind == CollectiveKind::kSlice || (step.kind == CollectiveKind::kToPartial && !step.from_dim));
    if (joins) {
      last->axes.insert(last->axes.end(), step.axes.begin(), step.axes.end());
      last->axes = joined(last->axes);
      last->after = std::move(step.after);
      last->local_shape = std::move(step.local_shape);
    } else {
      plan.steps.push_back(std::move(step));
    }
  }
  add_up(plan, asked.tensor_bytes);
  return plan;
}

RedistributionPlanner::RedistributionPlanner(DeviceMesh mesh, std::shared_ptr<const CollectiveCosts> costs,
                                             RedistributionOptions options)
    : state_(std::make_unique<State>(std::move(mesh), std::move(costs), options)) {}

RedistributionPlanner::~RedistributionPlanner() = default;

const DeviceMesh& RedistributionPlanner::mesh() const { return state_->mesh; }

const Redistribution& RedistributionPlanner::plan(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                                  Bytes element_bytes) {
  PlanKey key = {canonical(from, state_->mesh, shape), canonical(to, state_->mesh, shape), shape, element_bytes};
  const auto known = state_->plans.find(key);
  if (known != state_->plans.end()) return *known->second;
  auto plan = std::make_unique<Redistribution>(state_->make_plan(key));
  return *state_->plans.emplace(std::move(key), std::move(plan)).first->second;
}

Picoseconds RedistributionPlanner::time(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                        Bytes element_bytes) {
  const TensorLayout source = canonical(from, state_->mesh, shape);
  const TensorLayout target = canonical(to, state_->mesh, shape);
  if (source == target) return 0;
  const State::Route route = state_->route(source, target, shape, element_bytes);
  const PlanKey key = {source, target, shape, element_bytes};
  ShortestPaths* const best = state_->best_paths(route, key);
  return best == nullptr ? state_->greedy_plan(key).time : *best->time(route.target);
}

}  // namespace shardplan
