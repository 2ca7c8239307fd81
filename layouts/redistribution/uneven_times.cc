#include "layouts/redistribution/uneven_times.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/random.h"
#include "layouts/redistribution/search/bounded_rows.h"
#include "layouts/redistribution/search/bounded_times.h"
#include "layouts/redistribution/uneven_states.h"

// All steps between the states that layouts of one tensor can have, computed once; then each source is one run of
// Dijkstra's algorithm over numbers. The times equal those of the search for one pair: states here may be in the parts
// of any layout, there in those of the two ends, which changes no time, since what is done while a dimension is in
// parts can be done while the same pieces shard it as rows, at the same cost.
namespace shardplan {
namespace {

struct StateHash {
  std::size_t operator()(const UnevenStates::State& state) const noexcept {
    std::uint64_t value = static_cast<std::uint64_t>(state.reduction);
    const auto add = [&](const UnevenStates::Pieces& pieces) {
      std::uint64_t digits = 1;  // at most UnevenStates::kMostPermuted pieces
      for (const std::uint8_t piece : pieces) digits = digits << 8 | piece;
      value = mix(value ^ digits);
    };
    for (const UnevenStates::Pieces& pieces : state.dimensions) add(pieces);
    for (const char form : state.parts) value = value * 31 + static_cast<unsigned char>(form);
    add(state.partial);
    return value;
  }
};

}  // namespace

struct UnevenTimes::Graph {
  using State = UnevenStates::State;
  using Edge = UnevenStates::Edge;

  Graph(const Shape& shape, Bytes element_bytes, const CollectiveCosts& costs, bool bounded_memory,
        const std::vector<AxisRef>& pieces)
      : largest(bounded_memory ? LargestOnWay::kLeast : LargestOnWay::kAny),
        space(shape, element_bytes, pieces, costs) {}

  /// The number of a layout's state. New parts are new steps for states that are known.
  std::uint32_t add(const TensorLayout& layout) {
    const std::size_t before = space.num_known();
    const State state = space.encode(layout);
    if (space.num_known() != before) is_complete = false;
    return number(state);
  }
  std::uint32_t number(const State& state) {
    const auto [at, is_new] = numbers.try_emplace(state, static_cast<std::uint32_t>(states.size()));
    if (is_new) {
      states.push_back(state);
      sizes.push_back(space.local_elements(state));
    }
    return at->second;
  }

  /// Finds all states that can be reached from the known ones and the cheapest step from each to each next one.
  void complete() {
    if (is_complete && arcs.num_states() == states.size()) return;
    rows.clear();
    std::vector<std::size_t> first_arc = {0};
    std::vector<BoundedTimes::Arc> found;
    std::vector<Picoseconds> costs;
    std::unordered_map<std::uint32_t, std::size_t> arc_to;
    for (std::uint32_t at = 0; at < states.size(); ++at) {
      const State from = states[at];
      arc_to.clear();
      space.leave(from, nullptr, [&](const Edge& edge) {
        const std::uint32_t target = number(edge.target);
        const Picoseconds cost = space.cost_of(from, edge).time;
        const auto [arc, is_new] = arc_to.try_emplace(target, found.size());
        if (is_new) {
          found.push_back({target, static_cast<std::uint32_t>(costs.size())});
          costs.push_back(cost);
        } else {
          costs[arc->second] = std::min(costs[arc->second], cost);
        }
      });
      first_arc.push_back(found.size());
    }
    arcs = BoundedTimes(sizes, std::move(first_arc), std::move(found));
    arc_times.clear();
    for (const BoundedTimes::Arc& arc : arcs.arcs()) arc_times.push_back(costs[arc.cost]);
    is_complete = true;
  }

  std::optional<Picoseconds> time(std::uint32_t source, std::uint32_t target) {
    complete();
    const Picoseconds time = rows.row(arcs, arc_times, largest, source)[arcs.place(target)];
    return time == BoundedTimes::kNoPath ? std::nullopt : std::optional(time);
  }

  LargestOnWay largest;
  bool is_complete = true;  // no parts became known since `arcs` were found
  UnevenStates space;
  std::unordered_map<State, std::uint32_t, StateHash> numbers;  // never iterated over
  std::vector<State> states;
  std::vector<std::int64_t> sizes;
  BoundedTimes arcs;
  std::vector<Picoseconds> arc_times;
  BoundedRows rows;
};

UnevenTimes::UnevenTimes(const Shape& shape, Bytes element_bytes, const CollectiveCosts& costs, bool bounded_memory,
                         const std::vector<AxisRef>& pieces)
    : pieces_(pieces) {
  if (pieces.empty() || pieces.size() > UnevenStates::kMostPermuted) return;
  for (std::unique_ptr<Graph>& graph : graphs_) {
    graph = std::make_unique<Graph>(shape, element_bytes, costs, bounded_memory, pieces);
  }
}
UnevenTimes::UnevenTimes(UnevenTimes&&) noexcept = default;
UnevenTimes::~UnevenTimes() = default;

UnevenTimes::End UnevenTimes::add(const TensorLayout& layout) {
  End end;
  end.reduction = layout.reduction;
  if (graphs_[0] == nullptr || !consists_of(layout, pieces_)) return end;
  for (std::size_t i = 0; i < graphs_.size(); ++i) {
    const bool is_met = layout.reduction == Reduction::kSum || static_cast<std::size_t>(layout.reduction) == i;
    if (is_met) end.states[i] = graphs_[i]->add(layout);
  }
  return end;
}

std::optional<Picoseconds> UnevenTimes::time(const End& from, const End& to) {
  const auto reduction = static_cast<std::size_t>(from.reduction == Reduction::kSum ? to.reduction : from.reduction);
  const std::optional<std::uint32_t>& source = from.states[reduction];
  const std::optional<std::uint32_t>& target = to.states[reduction];
  if (!source || !target) return std::nullopt;
  return graphs_[reduction]->time(*source, *target);
}

}  // namespace shardplan
