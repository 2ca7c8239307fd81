// Shortest paths over layouts.
//
// The states and steps are those of RedistributionGraph, the algorithm is Dijkstra's; towards a single target it is led
// by lower bounds (lower_bounds.h), which leaves the answer as it is. What keeps it small is the choice of the pieces
// into which axes are cut and of the digits of dimensions in which they may stand (common_refinement.h):
//
//   - Up to kManyStates states, axes are cut to primes and dimensions into all digits that those can cut. All pairs of
//     layouts of all tensors of like divisibility share one graph, one search answers for all targets of a source, and
//     cost is a metric by construction: a path through any layout is a path.
//   - Beyond, digits are those that the two ends cut; then axes are cut only where the ends cut a dimension at
//     different products; then an axis can be parked, while another is gathered, in one dimension only; then axes that
//     neither end uses are left out.
//   - Beyond that the search is made for its one target: pieces move only to where they end, leading pieces that both
//     ends have in common stay, and after a permute each part begins as it ends. It looks only for what beats
//     MindSpore's greedy order, and gives up in its favour after kMostSettled states; after many more where that order
//     breaks the memory bound (bench/redistribution_bench.cc counts how often it stays broken).
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
#include "layouts/time_table.h"

namespace shardplan {
namespace {

constexpr std::int64_t kManyStates = 400;
constexpr std::size_t kMostSearches = 2048;
constexpr std::size_t kMostSettled = 400;              // of a search for one target
constexpr std::size_t kMostSettledForMemory = 20'000;  // where the greedy order breaks the memory bound

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

Bytes bytes_of(const Shape& shape, Bytes element_bytes) {
  Bytes bytes = element_bytes;
  for (const std::int64_t extent : shape) bytes = multiply_divide(bytes, extent, 1);
  return bytes;
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
    bool is_large = false;  // searched for this one target, as far as is reasonable
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
  /// Whether one target is asked for, so that a search towards it pays, or many in a row of one source.
  enum class Targets { kOne, kMany };
  ShortestPaths& paths(const Route& route, const PathBound& bound, Targets targets);
  ShortestPaths* best_paths(const Route& route, const PlanKey& key, Targets targets);
  Redistribution greedy_plan(const PlanKey& key);
  Redistribution make_plan(const PlanKey& key);

  DeviceMesh mesh;
  std::shared_ptr<const CollectiveCosts> costs;
  RedistributionOptions options;
  std::map<GraphKey, std::unique_ptr<Graph>> graphs;
  std::unordered_map<SearchKey, ShortestPaths, SearchKeyHash> searches;  // forgotten when there are too many
  std::optional<ShortestPaths> search_for_one;                           // the last
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
    for (const PieceChart& chart : key.charts) {
      if (chart.bins.size() > PieceState::kMostBins) return;
    }
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
  route.tensor_bytes = bytes_of(shape, element_bytes);
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
  const std::optional<Ends> ends = ends_in(*route.graph, from, to, shape);
  SHARDPLAN_CHECK(ends.has_value());
  route.ends = *ends;
  return route;
}

PriceList& RedistributionPlanner::State::prices(Graph& graph, Bytes tensor_bytes) {
  return graph.prices.try_emplace(tensor_bytes, graph.graph, *costs, tensor_bytes).first->second;
}

ShortestPaths& RedistributionPlanner::State::paths(const Route& route, const PathBound& bound, Targets targets) {
  if (targets == Targets::kOne) {
    return search_for_one.emplace(route.graph->graph, prices(*route.graph, route.tensor_bytes), route.ends.source,
                                  bound, route.ends.target);
  }
  const SearchKey key = {route.graph, route.tensor_bytes, route.ends.source, bound};
  const auto known = searches.find(key);
  if (known != searches.end()) return known->second;
  if (searches.size() == kMostSearches) searches.clear();
  PriceList& list = prices(*route.graph, route.tensor_bytes);
  return searches.try_emplace(key, route.graph->graph, list, route.ends.source, bound).first->second;
}

/// Nothing if a large search gave up.
ShortestPaths* RedistributionPlanner::State::best_paths(const Route& route, const PlanKey& key, Targets targets) {
  RedistributionGraph& graph = route.graph->graph;
  PathBound bound;
  if (options.bounded_memory) {
    bound.least_shards = std::min(graph.num_shards(route.ends.source), graph.num_shards(route.ends.target));
  }
  if (route.is_large) {
    const Redistribution greedy = greedy_plan(key);
    const bool keeps_bound = std::all_of(greedy.steps.begin(), greedy.steps.end(), [&](const CollectiveStep& step) {
      return num_shards(step.after) >= bound.least_shards;
    });
    bound.most_time = keeps_bound ? greedy.time : INT64_MAX;
    bound.most_settled = keeps_bound ? kMostSettled : kMostSettledForMemory;
    ShortestPaths& within = paths(route, bound, Targets::kOne);
    return within.time(route.ends.target) ? &within : nullptr;
  }
  ShortestPaths& within = paths(route, bound, targets);
  if (within.time(route.ends.target)) return &within;
  const std::optional<Bytes> peak = least_peak(graph, route.tensor_bytes, route.ends.source, route.ends.target);
  SHARDPLAN_CHECK(peak.has_value());
  PathBound raised;
  raised.most_peak = *peak;
  ShortestPaths& above = paths(route, raised, targets);
  SHARDPLAN_CHECK(above.time(route.ends.target).has_value());
  return &above;
}

/// What is partial is reduced first and what becomes partial is so last; in between MindSpore's order.
Redistribution RedistributionPlanner::State::greedy_plan(const PlanKey& key) {
  Redistribution plan;
  plan.from = key.from;
  plan.to = key.to;
  const Bytes tensor_bytes = bytes_of(key.shape, key.element_bytes);
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
  PriceList& list = prices(*asked.graph, asked.tensor_bytes);
  ShortestPaths* const best = best_paths(asked, key, Targets::kOne);
  if (best == nullptr) return greedy_plan(key);
  for (const ShortestPaths::Hop& hop : best->path(asked.ends.target)) {
    CollectiveStep step;
    step.kind = graph.prices()[hop.edge.price].kind;
    step.axes = graph.ordered_axes(hop.from, hop.edge);
    if (hop.edge.from_dim >= 0) step.from_dim = static_cast<std::size_t>(hop.edge.from_dim);
    if (hop.edge.to_dim >= 0) step.to_dim = static_cast<std::size_t>(hop.edge.to_dim);
    step.before = graph.layout(hop.from, key.shape);
    step.after = graph.layout(hop.edge.target, key.shape);
    step.reduction = step.kind == CollectiveKind::kToPartial ? step.after.reduction : step.before.reduction;
    step.local_shape = local_shape(step.after, key.shape);
    step.sent = list[hop.edge.price].sent;
    step.time = list[hop.edge.price].time;
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
  if (route.is_large) return plan(source, target, shape, element_bytes).time;
  const PlanKey key = {source, target, shape, element_bytes};
  return *state_->best_paths(route, key, State::Targets::kMany)->time(route.ends.target);
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
    PriceList& prices = state_->prices(graph, bytes_of(shape, element_bytes));
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
