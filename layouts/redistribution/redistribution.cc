// Shortest paths over layouts.
//
// The states and steps are those of RedistributionGraph, the algorithm is Dijkstra's; towards a single target it is led
// by lower bounds (lower_bounds.h), which leaves the answer as it is. What keeps it small is the choice of the pieces
// into which axes are cut and of the digits of dimensions in which they may stand (common_refinement.h):
//
//   - Up to kManyStates states, axes are cut to primes and dimensions into all digits that those can cut. All pairs of
//     layouts of all tensors of like divisibility share one graph, one search answers for all targets of a source, and
//     cost is a metric by construction: a path through any layout is a path.
//   - Beyond, digits are those that the two ends cut. On three prime pieces and three dimensions that still fits, so
//     that exchanges of a part of an axis are seen there, which for few bytes can save hops.
//   - Beyond, up to kManyOfWhole, axes are cut only where the ends cut a dimension at different products; then an axis
//     can be parked, while another is gathered, in one dimension only; then axes that neither end uses are left out.
//   - Beyond that the search is made for its one target: pieces move only to where they end, leading pieces that both
//     ends have in common stay, and after a permute each part begins as it ends. It looks only for what beats
//     MindSpore's greedy order, or a way found in haste (hasty_path.h) where that order breaks the memory bound, and
//     gives up in its favour after kMostSettled states.
//   - Where all this knows no way within the memory bound, finer graphs are tried in haste. That concerns nearly only
//     ends without a common refinement (6 cut as 2 x 3 and as 3 x 2). Few of them stay above the bound, as where only a
//     general permutation of devices would do; larger_end.h tells (redistribution_test.cc has cases).
//
// Two permutes never follow each other: one leads to every state with the same cuts. But round an exchange they can be
// cheaper than any sequence with one, since a permute takes one hop and an all_to_all as many as there are others
// (redistribution_test.cc has a case). So the cheapest sequence is promised, not one with a single permute.
//
// A slower path within the memory bound is preferred to a faster one above it. The bound is a least number of shards,
// so the searches of one source differ only by the few products that shards can have.

#include "layouts/redistribution/redistribution.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/integer.h"
#include "base/random.h"
#include "layouts/index_digits.h"
#include "layouts/redistribution/greedy_redistribution.h"
#include "layouts/redistribution/search/best_first_path.h"
#include "layouts/redistribution/search/common_refinement.h"
#include "layouts/redistribution/search/pairwise_times.h"
#include "layouts/redistribution/search/redistribution_graph.h"
#include "layouts/redistribution/search/shortest_paths.h"

namespace shardplan {
namespace {

constexpr std::int64_t kManyStates = 700;   // of axes cut to primes
constexpr std::int64_t kManyOfWhole = 400;  // of axes as the ends cut them
constexpr std::size_t kMostSearches = 2048;
constexpr std::size_t kMostSettled = 600;           // of a search for one target
constexpr std::size_t kMostSettledInHaste = 2'000;  // to any way, where the greedy order breaks the memory bound
constexpr std::size_t kMostSettledFiner = 100;      // the same in each finer graph, where that does not help
constexpr std::size_t kMostSettledThere = 50;       // to a better way

/// What a graph depends on. Shape and target only where they matter.
struct GraphKey {
  std::vector<PieceChart> charts;
  Shape shape;
  std::optional<RedistributionGraph::Ends> ends;

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

using Hops = std::vector<ShortestPaths::Hop>;

/// The steps of a path; neighbouring free ones that are alike are one.
Redistribution plan_of(const PlanKey& key, const RedistributionGraph& graph, PriceList& prices, const Hops& hops) {
  Redistribution plan;
  plan.from = key.from;
  plan.to = key.to;
  for (const ShortestPaths::Hop& hop : hops) {
    CollectiveStep step;
    step.kind = graph.prices()[hop.edge.price].kind;
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
  add_up(plan, prices.tensor_bytes());
  return plan;
}

std::int64_t least_shards_of(const Redistribution& plan) {
  std::int64_t least = INT64_MAX;
  for (const CollectiveStep& step : plan.steps) least = std::min(least, num_shards(step.after));
  return least;
}

bool can_be_searched(const PieceChart& chart) {
  return chart.pieces.size() <= PieceState::kMostPieces && chart.bins.size() <= PieceState::kMostBins;
}

/// Looks for what is faster than `most_time`, for a while.
std::optional<Hops> hops_below(RedistributionGraph& graph, PriceList& prices, std::uint32_t source,
                               std::uint32_t target, PathBound bound, Picoseconds most_time, std::size_t most_settled) {
  bound.most_time = most_time;
  bound.most_settled = most_settled;
  ShortestPaths search(graph, prices, source, bound, target);
  if (!search.time(target)) return std::nullopt;
  return search.path(target);
}

/// Looks for any way, and then for a better one.
std::optional<Hops> hops_in_haste(RedistributionGraph& graph, PriceList& prices, std::uint32_t source,
                                  std::uint32_t target, PathBound bound, std::size_t most_settled,
                                  std::size_t most_settled_then) {
  bound.most_settled = most_settled;
  const std::optional<Hops> hasty = hasty_path(graph, prices, source, target, bound);
  if (!hasty) return std::nullopt;
  Picoseconds time = 0;
  for (const ShortestPaths::Hop& hop : *hasty) time += prices[hop.edge.price].time;
  const std::optional<Hops> better = hops_below(graph, prices, source, target, bound, time, most_settled_then);
  return better ? better : hasty;
}

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

Bytes of_group(Bytes shard, std::int64_t group_size) { return multiply_divide(shard, group_size, 1); }

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
  if (step.kind == CollectiveKind::kAllToAll || step.kind == CollectiveKind::kCollectivePermute)
    group_bytes = of_group(group_bytes, p);
  step.sent = std::min(kMostOfStep, sent_bytes(step.kind, p, group_bytes));
  std::vector<AxisRef> axes = step.axes;
  std::sort(axes.begin(), axes.end());
  const bool is_free = step.kind == CollectiveKind::kSlice || step.kind == CollectiveKind::kToPartial;
  step.time = is_free ? 0 : std::min(kMostOfStep, costs.time(step.kind, joined(axes), group_bytes));
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
    Graph(const GraphKey& key, bool bounded) : graph(key.charts, key.shape, key.ends), table(graph, bounded) {}
    RedistributionGraph graph;
    std::map<Bytes, PriceList> prices;  // by bytes of the whole tensor
    TimeTable table;
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
  struct Ends {
    std::uint32_t source = 0;
    std::uint32_t target = 0;
  };
  /// One question, with all that is needed to ask it.
  struct Route {
    Graph* graph = nullptr;
    Bytes tensor_bytes = 0;
    Ends ends;
    std::optional<Detail> detail;  // of the graph; none: it is of the asker's pieces
    bool is_large = false;         // searched for this one target, as far as is reasonable
  };

  State(DeviceMesh mesh_, std::shared_ptr<const CollectiveCosts> costs_, RedistributionOptions options_)
      : mesh(std::move(mesh_)), costs(std::move(costs_)), options(options_) {}

  Graph& graph_of(GraphKey key);
  Route route(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes);
  PriceList& prices(Graph& graph, Bytes tensor_bytes);
  static std::optional<Ends> ends_in(Graph& graph, const TensorLayout& from, const TensorLayout& to,
                                     const Shape& shape);
  /// Of layouts that place whole pieces of the asker in parts that end at these borders; the first graph that can say
  /// both ends of a pair is its own.
  std::vector<Graph*> graphs_of_pieces(const PartBorders& from, const PartBorders& to, const Shape& shape);
  ShortestPaths& paths(const Route& route, const PathBound& bound);
  PathBound bound_of(const TensorLayout& from, const TensorLayout& to) const;
  std::optional<Hops> best_hops(const Route& route, const PathBound& bound, const Redistribution* greedy);
  std::optional<Redistribution> plan_in_finer_graph(const Route& route, const PlanKey& key, const PathBound& bound);
  Hops hops_of_least_peak(const Route& route);
  Redistribution greedy_plan(const PlanKey& key);
  Redistribution make_plan(const PlanKey& key);

  DeviceMesh mesh;
  std::shared_ptr<const CollectiveCosts> costs;
  RedistributionOptions options;
  std::map<GraphKey, std::unique_ptr<Graph>> graphs;
  std::unordered_map<SearchKey, ShortestPaths, SearchKeyHash> searches;  // forgotten when there are too many
  std::unordered_map<PlanKey, std::unique_ptr<Redistribution>, PlanKeyHash> plans;
};

RedistributionPlanner::State::Graph& RedistributionPlanner::State::graph_of(GraphKey key) {
  auto [entry, is_new] = graphs.try_emplace(std::move(key));
  if (is_new) {
    entry->second = std::make_unique<Graph>(entry->first, options.bounded_memory);
  }
  return *entry->second;
}

std::optional<RedistributionPlanner::State::Ends> RedistributionPlanner::State::ends_in(Graph& graph,
                                                                                        const TensorLayout& from,
                                                                                        const TensorLayout& to,
                                                                                        const Shape& shape) {
  const auto source = graph.graph.find(from, shape);
  if (!source) return std::nullopt;
  const auto target = graph.graph.find(to, shape);
  if (!target) return std::nullopt;
  return Ends{*source, *target};
}

std::vector<RedistributionPlanner::State::Graph*> RedistributionPlanner::State::graphs_of_pieces(
    const PartBorders& from, const PartBorders& to, const Shape& shape) {
  std::vector<Graph*> result;
  if (options.pieces.empty() || options.pieces.size() > PieceState::kMostPieces) return result;
  const auto add = [&](GraphKey key) {
    if (!std::all_of(key.charts.begin(), key.charts.end(), can_be_searched)) return;
    result.push_back(&graph_of(std::move(key)));
  };
  const auto chart = [&](const PartBorders& borders) {
    return chart_of_pieces(options.pieces, borders, shape, mesh.num_devices());
  };
  if (const std::optional<PartBorders> both = joined_borders(from, to)) add({{chart(*both)}, {}, {}});
  if (from != to) add({{chart(from), chart(to)}, shape, {}});
  return result;
}

RedistributionPlanner::State::Route RedistributionPlanner::State::route(const TensorLayout& from,
                                                                        const TensorLayout& to, const Shape& shape,
                                                                        Bytes element_bytes) {
  Route route;
  route.tensor_bytes = num_bytes(shape, element_bytes);
  for (Graph* const graph : graphs_of_pieces(part_borders(from, shape), part_borders(to, shape), shape)) {
    if (const std::optional<Ends> ends = ends_in(*graph, from, to, shape)) {
      route.graph = graph;
      route.ends = *ends;
      return route;
    }
  }
  GraphKey key;
  for (const Detail detail : {Detail::kAll, Detail::kPrimes, Detail::kEnds, Detail::kUsed, Detail::kMoved}) {
    key.charts = common_charts(from, to, mesh, shape, detail);
    std::int64_t states = 0;
    bool fits = true;
    for (const PieceChart& chart : key.charts) {
      states += num_states(chart);
      fits = fits && can_be_searched(chart);
    }
    route.detail = detail;
    if (fits && states <= (detail <= Detail::kPrimes ? kManyStates : kManyOfWhole)) break;
    if (detail != Detail::kMoved) continue;
    if (!fits) {
      throw InputError({},
                       "from {} to {}: cuts the mesh into more than {} pieces, or the tensor into more than {} parts",
                       to_string(from, mesh), to_string(to, mesh), PieceState::kMostPieces, PieceState::kMostBins);
    }
    route.is_large = true;
    if (key.charts.size() == 1) {
      const std::int64_t least = options.bounded_memory ? std::min(num_shards(from), num_shards(to)) : 1;
      key.ends = {*key.charts[0].encode(from, shape), *key.charts[0].encode(to, shape), least};
    }
  }
  if (key.charts.size() > 1) key.shape = shape;
  route.graph = &graph_of(std::move(key));
  const std::optional<Ends> ends = ends_in(*route.graph, from, to, shape);
  SHARDPLAN_CHECK(ends.has_value());
  route.ends = *ends;
  return route;
}

PriceList& RedistributionPlanner::State::prices(Graph& graph, Bytes tensor_bytes) {
  return graph.prices.try_emplace(tensor_bytes, graph.graph, *costs, tensor_bytes).first->second;
}

ShortestPaths& RedistributionPlanner::State::paths(const Route& route, const PathBound& bound) {
  const SearchKey key = {route.graph, route.tensor_bytes, route.ends.source, bound};
  const auto known = searches.find(key);
  if (known != searches.end()) return known->second;
  if (searches.size() == kMostSearches) searches.clear();
  PriceList& list = prices(*route.graph, route.tensor_bytes);
  return searches.try_emplace(key, route.graph->graph, list, route.ends.source, bound).first->second;
}

PathBound RedistributionPlanner::State::bound_of(const TensorLayout& from, const TensorLayout& to) const {
  PathBound bound;
  if (options.bounded_memory) bound.least_shards = std::min(num_shards(from), num_shards(to));
  return bound;
}

/// The best way within the bound; nothing if there is none, or a large search gave up and `greedy`, which is within it,
/// is the best that is known.
std::optional<Hops> RedistributionPlanner::State::best_hops(const Route& route, const PathBound& bound,
                                                            const Redistribution* greedy) {
  RedistributionGraph& graph = route.graph->graph;
  PriceList& list = prices(*route.graph, route.tensor_bytes);
  const auto [source, target] = route.ends;
  if (route.is_large && greedy != nullptr)
    return hops_below(graph, list, source, target, bound, greedy->time, kMostSettled);
  if (route.is_large) return hops_in_haste(graph, list, source, target, bound, kMostSettledInHaste, kMostSettled);
  ShortestPaths search(graph, list, source, bound, target);
  if (!search.time(target)) return std::nullopt;
  return search.path(target);
}

/// Where a coarse graph knows no way within the bound, a finer one may: with more places to park pieces in.
std::optional<Redistribution> RedistributionPlanner::State::plan_in_finer_graph(const Route& route, const PlanKey& key,
                                                                                const PathBound& bound) {
  for (const Detail detail : {Detail::kMoved, Detail::kUsed, Detail::kEnds, Detail::kPrimes, Detail::kAll}) {
    if (route.detail && detail > *route.detail) continue;
    std::vector<PieceChart> charts = common_charts(key.from, key.to, mesh, key.shape, detail);
    if (detail == route.detail && !route.is_large && charts.size() == 1) continue;  // has been searched
    for (std::size_t i = 0, ends = charts.size(); ends > 1 && i < ends; ++i) {
      PieceChart rows = chart_of_rows(charts[i], key.shape, mesh.num_devices());
      if (std::find(charts.begin(), charts.end(), rows) == charts.end()) charts.push_back(std::move(rows));
    }
    if (!std::all_of(charts.begin(), charts.end(), can_be_searched)) continue;
    RedistributionGraph graph(charts, key.shape);
    PriceList list(graph, *costs, route.tensor_bytes);
    const std::uint32_t source = *graph.find(key.from, key.shape);
    const std::uint32_t target = *graph.find(key.to, key.shape);
    if (const auto hops = hops_in_haste(graph, list, source, target, bound, kMostSettledFiner, kMostSettledThere)) {
      return plan_of(key, graph, list, *hops);
    }
  }
  return std::nullopt;
}

Hops RedistributionPlanner::State::hops_of_least_peak(const Route& route) {
  const auto [source, target] = route.ends;
  PathBound raised;
  const std::optional<Bytes> peak = least_peak(route.graph->graph, route.tensor_bytes, source, target);
  SHARDPLAN_CHECK(peak.has_value());
  raised.most_peak = *peak;
  return ShortestPaths(route.graph->graph, prices(*route.graph, route.tensor_bytes), source, raised, target)
      .path(target);
}

/// What is partial is reduced first and what becomes partial is so last; in between MindSpore's order.
Redistribution RedistributionPlanner::State::greedy_plan(const PlanKey& key) {
  Redistribution plan;
  plan.from = key.from;
  plan.to = key.to;
  const Bytes tensor_bytes = num_bytes(key.shape, key.element_bytes);
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
  const Route asked = route(key.from, key.to, key.shape, key.element_bytes);
  const PathBound bound = bound_of(key.from, key.to);
  PriceList& list = prices(*asked.graph, asked.tensor_bytes);
  std::optional<Redistribution> greedy;
  if (asked.is_large) greedy = greedy_plan(key);
  const bool is_greedy_within = greedy && least_shards_of(*greedy) >= bound.least_shards;
  if (const auto hops = best_hops(asked, bound, is_greedy_within ? &*greedy : nullptr)) {
    return plan_of(key, asked.graph->graph, list, *hops);
  }
  if (is_greedy_within) return *greedy;
  if (auto finer = plan_in_finer_graph(asked, key, bound)) return *finer;
  return greedy ? *greedy : plan_of(key, asked.graph->graph, list, hops_of_least_peak(asked));
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
  if (!route.is_large) {
    ShortestPaths& paths = state_->paths(route, state_->bound_of(source, target));
    if (const std::optional<Picoseconds> time = paths.time(route.ends.target)) return *time;
  }
  return plan(source, target, shape, element_bytes).time;
}

std::vector<Picoseconds> RedistributionPlanner::times(std::span<const TensorLayout* const> from,
                                                      std::span<const TensorLayout* const> to, const Shape& shape,
                                                      Bytes element_bytes) {
  constexpr Picoseconds kUnknown = -1;
  struct Class {
    std::vector<std::size_t> members;
    std::vector<TensorLayout> layouts;
  };
  const auto classes_of = [&](std::span<const TensorLayout* const> layouts) {
    std::map<PartBorders, Class> classes;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      TensorLayout layout = canonical(*layouts[i], state_->mesh, shape);
      Class& same = classes[part_borders(layout, shape)];
      same.members.push_back(i);
      same.layouts.push_back(std::move(layout));
    }
    return classes;
  };
  std::vector<Picoseconds> result(from.size() * to.size(), kUnknown);
  const auto fill = [&](State::Graph& graph, const Class& sources, const Class& targets) {
    const auto find = [&](const Class& layouts) {
      std::vector<std::optional<std::uint32_t>> found;
      for (const TensorLayout& layout : layouts.layouts) found.push_back(graph.graph.find(layout, shape));
      return found;
    };
    const auto source_states = find(sources);
    const auto target_states = find(targets);
    PriceList& prices = state_->prices(graph, num_bytes(shape, element_bytes));
    for (std::size_t i = 0; i < source_states.size(); ++i) {
      if (!source_states[i]) continue;
      const std::vector<Picoseconds>& row = graph.table.row(*source_states[i], prices);
      for (std::size_t j = 0; j < target_states.size(); ++j) {
        Picoseconds& value = result[sources.members[i] * to.size() + targets.members[j]];
        if (value != kUnknown || !target_states[j]) continue;
        if (row[*target_states[j]] != TimeTable::kNoPath) value = row[*target_states[j]];
      }
    }
  };
  const std::map<PartBorders, Class> from_classes = classes_of(from);
  const std::map<PartBorders, Class> to_classes = classes_of(to);
  for (const auto& [from_borders, sources] : from_classes) {
    for (const auto& [to_borders, targets] : to_classes) {
      for (State::Graph* const graph : state_->graphs_of_pieces(from_borders, to_borders, shape)) {
        fill(*graph, sources, targets);
      }
    }
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t j = 0; j < to.size(); ++j) {
      Picoseconds& value = result[i * to.size() + j];
      if (value == kUnknown) value = time(*from[i], *to[j], shape, element_bytes);
    }
  }
  return result;
}

}  // namespace shardplan
