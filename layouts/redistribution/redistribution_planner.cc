// Shortest paths over layouts.
//
// The states and steps are those of RedistributionGraph, the algorithm is Dijkstra's; towards a single target it is
// guided by a lower bound on the remaining cost (remaining_cost.h), which does not change the answer. What keeps it
// small is the choice of the pieces into which axes are split and of the slots of dimensions that they may occupy
// (common_refinement.h; SearchGraphs::route takes the first choice that is small enough):
//
//   kFull      axes are cut to primes and dimensions into all digits that those can shard. All pairs of layouts of all
//              tensors of like divisibility share one graph, one search answers for all targets of a source, and cost
//              is a metric by construction: a path through any layout is a path.
//   kPrime     digits are those that the two ends cut. On three prime pieces and three dimensions that still fits, so
//              that exchanges of a part of an axis are seen there, which for few bytes can save hops.
//   kEnds      axes are cut only where the ends cut a dimension at different products;
//   kOneSpare  a piece can be parked, while another is gathered, in one dimension only;
//   kMinimal   axes that neither end uses are left out. If that is still too large, the search is made for its one
//              target: pieces move only to where they end, leading pieces that both ends have in common stay, and after
//              a permute each slot begins as it ends. It looks only for what is cheaper than MindSpore's greedy order,
//              or than a path found by best-first search where that order breaks the memory bound, and settles for that
//              after kMostSettled states.
//
// If all this finds no path within the memory bound, finer graphs are tried by best-first search, but for those in
// which a proof shows that there is none (shared_layouts.h, stuck_piece.h). Finer graphs are needed almost only for
// ends without a common refinement (6 as 2 x 3 and as 3 x 2). A few of them still exceed the bound, for example where
// only a general permutation of devices would do; `exceeds_larger_end` says so (redistribution_planner_test.cc has
// cases).
//
// A finer graph is searched with all its states, as long as they are not more than kMostStatesFiner (one state of ten
// pieces can have a permute to each of 10! others), and where it has a single space also with those on the way to the
// target only. The better path is taken; neither search always finds it.
//
// Two permutes never follow each other: one permute leads to every state with as many shards along every slot. But
// permutes before and after an exchange can be cheaper than any sequence with one permute, since a permute takes one
// hop and an all_to_all as many hops as there are other members (redistribution_planner_test.cc has a case). So the
// cheapest sequence is guaranteed, not one with a single permute.
//
// A slower path within the memory bound is preferred to a faster one above it. The bound is a minimal number of shards,
// so the searches from one source differ only by the few products that numbers of shards can have.

#include "layouts/redistribution/redistribution_planner.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"
#include "layouts/redistribution/greedy_redistribution.h"
#include "layouts/redistribution/search/best_first_path.h"
#include "layouts/redistribution/search/search_graphs.h"
#include "layouts/redistribution/search/shape_layouts.h"
#include "layouts/redistribution/search/shared_layouts.h"
#include "layouts/redistribution/search/stuck_piece.h"
#include "layouts/redistribution/uneven_redistribution.h"
#include "layouts/redistribution/uneven_times.h"
#include "layouts/uneven.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostSettled = 600;             // by a search for one target
constexpr std::size_t kMostSettledBestFirst = 2'000;  // by one for any path, where the greedy order breaks the bound
constexpr std::size_t kMostSettledFiner = 100;        // by one in each finer graph, if that does not help
constexpr std::size_t kMostSettledFinerBetter = 50;   // and by one for a better path there
constexpr std::size_t kMostStatesFiner = 5'000;       // that such a graph may have for these searches

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

/// Nothing is known if false.
bool has_no_path_within(const PathBound& bound, const RedistributionGraph& graph, const Shape& shape,
                        std::uint32_t source, std::uint32_t target) {
  return are_spaces_apart(graph, shape, source, target, bound.least_shards) ||
         has_stuck_piece(graph, shape, source, target, bound.least_shards);
}

/// The steps of a path; neighbouring free steps of one kind are merged.
Redistribution plan_of(const PlanKey& key, const RedistributionGraph& graph, EdgeCosts& costs, const Path& path) {
  Redistribution plan;
  plan.from = key.from;
  plan.to = key.to;
  for (const PathEdge& at : path) {
    CollectiveStep step;
    step.kind = graph.edge_classes()[at.edge.edge_class].kind;
    step.axes = graph.ordered_axes(at);
    if (at.edge.from_dim >= 0) step.from_dim = static_cast<std::size_t>(at.edge.from_dim);
    if (at.edge.to_dim >= 0) step.to_dim = static_cast<std::size_t>(at.edge.to_dim);
    step.before = graph.layout(at.from, key.shape);
    step.after = graph.layout(at.edge.target, key.shape);
    step.reduction = step.kind == CollectiveKind::kToPartial ? step.after.reduction : step.before.reduction;
    step.local_shape = local_shape(step.after, key.shape);
    step.sent = costs[at.edge].sent;
    step.time = costs[at.edge].time;
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
  add_up(plan, costs.tensor_bytes());
  return plan;
}

/// The cheapest path that takes no longer than `most_time`, if `most_settled` states lead to it.
std::optional<Path> path_below(const SearchRoute& route, EdgeCosts& costs, PathBound bound, Picoseconds most_time,
                               std::size_t most_settled) {
  bound.most_time = most_time;
  bound.most_settled = most_settled;
  ShortestPaths search(route.graph->graph, costs, route.source, bound, route.target);
  if (!search.time(route.target)) return std::nullopt;
  return search.path(route.target);
}

/// Any path, and then a better one.
std::optional<Path> improved_best_first_path(const SearchRoute& route, EdgeCosts& costs, PathBound bound,
                                             std::size_t most_settled, std::size_t most_settled_then) {
  bound.most_settled = most_settled;
  const std::optional<Path> any = best_first_path(route.graph->graph, costs, route.source, route.target, bound);
  if (!any) return std::nullopt;
  Picoseconds time = 0;
  for (const PathEdge& at : *any) time += costs[at.edge].time;
  const std::optional<Path> better = path_below(route, costs, bound, time, most_settled_then);
  return better ? better : any;
}

/// The best path within the bound; nothing if there is none, or if a large search gave up and `greedy`, which is within
/// it, is the best known one.
std::optional<Path> best_path(const SearchRoute& route, EdgeCosts& costs, const PathBound& bound,
                              const Redistribution* greedy) {
  if (route.is_large && greedy != nullptr) return path_below(route, costs, bound, greedy->time, kMostSettled);
  if (route.is_large) return improved_best_first_path(route, costs, bound, kMostSettledBestFirst, kMostSettled);
  ShortestPaths search(route.graph->graph, costs, route.source, bound, route.target);
  if (!search.time(route.target)) return std::nullopt;
  return search.path(route.target);
}

Path path_of_least_peak(const SearchRoute& route, EdgeCosts& costs) {
  PathBound raised;
  const std::optional<Bytes> peak = least_peak(route.graph->graph, costs.tensor_bytes(), route.source, route.target);
  SHARDPLAN_CHECK(peak.has_value());
  raised.most_peak = *peak;
  return ShortestPaths(route.graph->graph, costs, route.source, raised, route.target).path(route.target);
}

}  // namespace

struct RedistributionPlanner::State {
  /// For tensors of one shape and dtype, with the layouts as its states.
  struct UnevenOfSize {
    UnevenTimes times;
    std::vector<std::optional<UnevenTimes::End>> known_ends;  // by ShapeLayouts::Id

    std::vector<UnevenTimes::End> ends(const ShapeLayouts& layouts, const std::vector<ShapeLayouts::Id>& ids) {
      known_ends.resize(layouts.size());
      std::vector<UnevenTimes::End> result;
      for (const ShapeLayouts::Id id : ids) {
        std::optional<UnevenTimes::End>& end = known_ends[id.value()];
        if (!end) end = times.add(layouts[id].layout);
        result.push_back(*end);
      }
      return result;
    }
  };
  struct OfShape {
    ShapeLayouts layouts;
    std::map<Bytes, UnevenOfSize> uneven;  // by bytes of an element
  };

  State(DeviceMesh mesh, std::shared_ptr<const CollectiveCosts> collective_costs, const RedistributionOptions& options)
      : costs(std::move(collective_costs)),
        bounded_memory(options.bounded_memory),
        pieces(options.pieces),
        graphs(std::move(mesh), options.pieces, options.bounded_memory) {}

  OfShape& of_shape(const Shape& shape) {
    const auto known = shapes.find(shape);
    if (known != shapes.end()) return known->second;
    return shapes.emplace(shape, OfShape{{shape, graphs}, {}}).first->second;
  }
  UnevenOfSize& uneven(const Shape& shape, Bytes element_bytes) {
    std::map<Bytes, UnevenOfSize>& sizes = of_shape(shape).uneven;
    const auto known = sizes.find(element_bytes);
    if (known != sizes.end()) return known->second;
    UnevenOfSize made = {{shape, element_bytes, *costs, bounded_memory, pieces}, {}};
    return sizes.emplace(element_bytes, std::move(made)).first->second;
  }
  EdgeCosts& costs_of(const SearchRoute& route, Bytes tensor_bytes) { return route.graph->costs(*costs, tensor_bytes); }
  Redistribution make_plan(const PlanKey& key);
  std::optional<Redistribution> plan_in_part(const SearchRoute& route, const PlanKey& key, const PathBound& bound);
  std::optional<Redistribution> plan_in_finer_graph(const SearchRoute& route, const PlanKey& key,
                                                    const PathBound& bound);

  std::shared_ptr<const CollectiveCosts> costs;
  bool bounded_memory;
  std::vector<AxisRef> pieces;
  SearchGraphs graphs;
  std::map<Shape, OfShape> shapes;
  std::unordered_map<PlanKey, std::unique_ptr<Redistribution>, PlanKeyHash> plans;  // never iterated over
};

Redistribution RedistributionPlanner::State::make_plan(const PlanKey& key) {
  if (is_uneven(key.from, key.shape) || is_uneven(key.to, key.shape)) {
    return uneven_redistribution(key.from, key.to, key.shape, key.element_bytes, graphs.mesh(), *costs, bounded_memory,
                                 pieces);
  }
  const SearchRoute route = graphs.route(key.from, key.to, key.shape);
  const PathBound bound = graphs.bound(key.from, key.to);
  EdgeCosts& edge_costs = costs_of(route, num_bytes(key.shape, key.element_bytes));
  std::optional<Redistribution> greedy;
  if (route.is_large) {
    greedy = greedy_with_partial(key.from, key.to, key.shape, key.element_bytes, graphs.mesh(), *costs);
  }
  const bool is_greedy_within = greedy && least_shards(*greedy) >= bound.least_shards;
  if (!has_no_path_within(bound, route.graph->graph, key.shape, route.source, route.target)) {
    const auto path = best_path(route, edge_costs, bound, is_greedy_within ? &*greedy : nullptr);
    if (path) return plan_of(key, route.graph->graph, edge_costs, *path);
  }
  if (is_greedy_within) return *greedy;
  if (auto finer = plan_in_finer_graph(route, key, bound)) return *finer;
  return greedy ? *greedy : plan_of(key, route.graph->graph, edge_costs, path_of_least_peak(route, edge_costs));
}

/// The best path that a limited search finds.
std::optional<Redistribution> RedistributionPlanner::State::plan_in_part(const SearchRoute& route, const PlanKey& key,
                                                                         const PathBound& bound) {
  route.graph->graph.limit_states(kMostStatesFiner);
  EdgeCosts& edge_costs = costs_of(route, num_bytes(key.shape, key.element_bytes));
  const auto path = improved_best_first_path(route, edge_costs, bound, kMostSettledFiner, kMostSettledFinerBetter);
  if (!path) return std::nullopt;
  return plan_of(key, route.graph->graph, edge_costs, *path);
}

/// Where a coarse graph has no path within the bound, a finer one may have: with more slots to park pieces in.
std::optional<Redistribution> RedistributionPlanner::State::plan_in_finer_graph(const SearchRoute& route,
                                                                                const PlanKey& key,
                                                                                const PathBound& bound) {
  for (const Refinement refinement :
       {Refinement::kMinimal, Refinement::kOneSpare, Refinement::kEnds, Refinement::kPrime, Refinement::kFull}) {
    if (route.refinement && refinement > *route.refinement) continue;
    std::vector<LayoutSpace> spaces = common_spaces(key.from, key.to, graphs.mesh(), key.shape, refinement);
    if (refinement == route.refinement && !route.is_large && spaces.size() == 1) continue;  // already searched
    for (std::size_t i = 0, ends = spaces.size(); ends > 1 && i < ends; ++i) {
      LayoutSpace rows = space_of_rows(spaces[i], key.shape, graphs.mesh().num_devices());
      if (std::find(spaces.begin(), spaces.end(), rows) == spaces.end()) spaces.push_back(std::move(rows));
    }
    if (!std::all_of(spaces.begin(), spaces.end(), can_be_searched)) continue;
    SearchGraph graph(std::move(spaces), key.shape, {}, bound.least_shards > 1);
    const SearchRoute finer = *route_in(graph, key.from, key.to, key.shape);
    if (has_no_path_within(bound, graph.graph, key.shape, finer.source, finer.target)) continue;
    std::optional<Redistribution> best = plan_in_part(finer, key, bound);
    const std::vector<LayoutSpace>& searched = graph.graph.spaces();
    if (searched.size() == 1) {
      SearchGraph straight(searched, {}, ends_in(searched[0], key.from, key.to, key.shape, bound),
                           bound.least_shards > 1);
      std::optional<Redistribution> other = plan_in_part(*route_in(straight, key.from, key.to, key.shape), key, bound);
      if (other && (!best || other->time < best->time)) best = std::move(other);
    }
    if (best) return best;
  }
  return std::nullopt;
}

RedistributionPlanner::RedistributionPlanner(DeviceMesh mesh, std::shared_ptr<const CollectiveCosts> costs,
                                             RedistributionOptions options)
    : state_(std::make_unique<State>(std::move(mesh), std::move(costs), options)) {}

RedistributionPlanner::~RedistributionPlanner() = default;

const DeviceMesh& RedistributionPlanner::mesh() const { return state_->graphs.mesh(); }

std::unique_ptr<RedistributionPlanner> RedistributionPlanner::another() const {
  return std::make_unique<RedistributionPlanner>(mesh(), state_->costs,
                                                 RedistributionOptions{state_->bounded_memory, state_->pieces});
}

const Redistribution& RedistributionPlanner::plan(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                                  Bytes element_bytes) {
  PlanKey key = {canonical(from, mesh(), shape), canonical(to, mesh(), shape), shape, element_bytes};
  const auto known = state_->plans.find(key);
  if (known != state_->plans.end()) return *known->second;
  auto plan = std::make_unique<Redistribution>(state_->make_plan(key));
  return *state_->plans.emplace(std::move(key), std::move(plan)).first->second;
}

Picoseconds RedistributionPlanner::time(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                        Bytes element_bytes) {
  const TensorLayout source = canonical(from, mesh(), shape);
  const TensorLayout target = canonical(to, mesh(), shape);
  if (source == target) return 0;
  if (is_uneven(source, shape) || is_uneven(target, shape)) {
    UnevenTimes& uneven = state_->uneven(shape, element_bytes).times;
    const UnevenTimes::End begin = uneven.add(source);
    const std::optional<Picoseconds> time = uneven.time(begin, uneven.add(target));
    return time ? *time : plan(source, target, shape, element_bytes).time;
  }
  const SearchRoute route = state_->graphs.route(source, target, shape);
  if (!route.is_large) {
    EdgeCosts& edge_costs = state_->costs_of(route, num_bytes(shape, element_bytes));
    ShortestPaths& paths = state_->graphs.paths(route, state_->graphs.bound(source, target), edge_costs);
    if (const std::optional<Picoseconds> time = paths.time(route.target)) return *time;
  }
  return plan(source, target, shape, element_bytes).time;
}

std::vector<Picoseconds> RedistributionPlanner::times(std::span<const TensorLayout* const> from,
                                                      std::span<const TensorLayout* const> to, const Shape& shape,
                                                      Bytes element_bytes) {
  constexpr Picoseconds kUnknown = -1;
  using Id = ShapeLayouts::Id;
  ShapeLayouts& known = state_->of_shape(shape).layouts;
  std::vector<Id> sources, targets;
  for (const TensorLayout* layout : from) sources.push_back(known.id(*layout));
  for (const TensorLayout* layout : to) targets.push_back(known.id(*layout));
  // Layouts whose parts end at the same products are states of the same graphs; uneven ones belong to none of them.
  using Positions = std::vector<std::size_t>;
  const auto by_borders = [&](const std::vector<Id>& layouts) {
    std::map<ShapeLayouts::BordersId, Positions> classes;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (!known[layouts[i]].is_uneven) classes[known[layouts[i]].borders].push_back(i);
    }
    return classes;
  };
  std::vector<Picoseconds> result(from.size() * to.size(), kUnknown);
  const auto fill = [&](SearchGraph& graph, const Positions& rows, const Positions& columns) {
    // All states first: a new one would invalidate the rows before it.
    const auto states = [&](const std::vector<Id>& layouts, const Positions& positions) {
      std::vector<std::optional<std::uint32_t>> found;
      for (const std::size_t i : positions) found.push_back(known.state(layouts[i], graph));
      return found;
    };
    const auto source_states = states(sources, rows);
    const auto target_states = states(targets, columns);
    EdgeCosts& edge_costs = graph.costs(*state_->costs, num_bytes(shape, element_bytes));
    std::vector<std::uint32_t> known_sources;
    for (const std::optional<std::uint32_t>& state : source_states) {
      if (state) known_sources.push_back(*state);
    }
    const auto times = graph.times.rows(known_sources, edge_costs);
    for (std::size_t i = 0, next = 0; i < rows.size(); ++i) {
      if (!source_states[i]) continue;
      const std::span<const Picoseconds> row = times[next++];
      for (std::size_t j = 0; j < columns.size(); ++j) {
        Picoseconds& value = result[rows[i] * to.size() + columns[j]];
        if (value != kUnknown || !target_states[j]) continue;
        const Picoseconds time = row[graph.times.place(*target_states[j])];
        if (time != PairwiseTimes::kNoPath) value = time;
      }
    }
  };
  const auto source_classes = by_borders(sources);
  const auto target_classes = by_borders(targets);
  for (const auto& [from_borders, rows] : source_classes) {
    for (const auto& [to_borders, columns] : target_classes) {
      for (SearchGraph* const graph : known.graphs(from_borders, to_borders)) fill(*graph, rows, columns);
    }
  }
  const auto is_uneven_id = [&](Id id) { return known[id].is_uneven; };
  const bool has_uneven = std::ranges::any_of(sources, is_uneven_id) || std::ranges::any_of(targets, is_uneven_id);
  if (has_uneven) {
    State::UnevenOfSize& uneven = state_->uneven(shape, element_bytes);
    const std::vector<UnevenTimes::End> begins = uneven.ends(known, sources);
    const std::vector<UnevenTimes::End> ends = uneven.ends(known, targets);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      for (std::size_t j = 0; j < targets.size(); ++j) {
        if (!is_uneven_id(sources[i]) && !is_uneven_id(targets[j])) continue;
        const std::optional<Picoseconds> time = uneven.times.time(begins[i], ends[j]);
        if (time) result[i * to.size() + j] = *time;
      }
    }
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (std::size_t j = 0; j < targets.size(); ++j) {
      Picoseconds& value = result[i * to.size() + j];
      if (value == kUnknown && sources[i] == targets[j]) value = 0;
      if (value == kUnknown) value = time(known[sources[i]].layout, known[targets[j]].layout, shape, element_bytes);
    }
  }
  return result;
}

void RedistributionPlanner::forget_times() { state_->graphs.forget_times(); }

}  // namespace shardplan
