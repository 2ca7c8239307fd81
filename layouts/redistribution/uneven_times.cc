#include "layouts/redistribution/uneven_times.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "layouts/redistribution/uneven_states.h"

// All steps between the states that layouts of one tensor can have, found once; then each source and bound is one run of
// Dijkstra's algorithm over numbers. The labels are those of Search, so the times are too: that states here stand in any
// layout's parts, and there in those of the two ends, changes none, since what is done while a dimension stands in parts
// can be done while the same pieces cut it in rows, at the same cost.
namespace shardplan {

struct UnevenTimes::Graph {
  using State = UnevenStates::State;
  using Label = UnevenStates::Label;
  using Edge = UnevenStates::Edge;

  struct Arc {
    std::uint32_t target = 0;
    StepCost cost;
  };

  Graph(const Shape& shape, Bytes element_bytes, const CollectiveCosts& costs, bool bounded_memory,
        const std::vector<AxisRef>& pieces)
      : is_bounded(bounded_memory), space(shape, element_bytes, pieces, costs) {}

  /// The number of a layout's state. New parts are new steps for states that are known.
  std::uint32_t add(const TensorLayout& layout) {
    const std::size_t before = space.num_known();
    const State state = space.encode(layout);
    if (space.num_known() != before) {
      arcs.clear();
      rows.clear();
    }
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

  const std::vector<Arc>& arcs_of(std::uint32_t state) {
    if (arcs.size() < states.size()) arcs.resize(states.size());
    if (!arcs[state]) {
      const State from = states[state];
      std::vector<Arc> found;
      space.leave(from, nullptr, [&](const Edge& edge) {
        found.push_back({number(edge.target), space.cost_of(from, edge)});
      });
      arcs.resize(states.size());
      arcs[state] = std::move(found);
    }
    return *arcs[state];
  }

  /// The least time to each state from `source` if shards of `bound` elements cost nothing.
  const std::vector<Picoseconds>& row(std::uint32_t source, std::int64_t bound) {
    std::vector<Picoseconds>& result = rows[{source, bound}];
    if (!result.empty()) return result;
    std::vector<std::optional<Label>> best(states.size());
    using Entry = std::pair<Label, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    best[source] = Label{bound, 0, 0, 0};
    queue.push({*best[source], source});
    while (!queue.empty()) {
      const auto [here, at] = queue.top();
      queue.pop();
      if (here != *best[at]) continue;  // was reached better since
      const std::vector<Arc>& leaving = arcs_of(at);
      best.resize(states.size());
      for (const Arc& arc : leaving) {
        const Label next = here.then(arc.cost, sizes[arc.target]);
        std::optional<Label>& known = best[arc.target];
        if (known && *known <= next) continue;
        known = next;
        queue.push({next, arc.target});
      }
    }
    for (const std::optional<Label>& label : best) result.push_back(label ? label->time : -1);
    return result;
  }

  bool is_bounded;
  UnevenStates space;
  std::map<State, std::uint32_t> numbers;
  std::vector<State> states;
  std::vector<std::int64_t> sizes;
  std::vector<std::optional<std::vector<Arc>>> arcs;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<Picoseconds>> rows;
};

UnevenTimes::UnevenTimes(const Shape& shape, Bytes element_bytes, const CollectiveCosts& costs, bool bounded_memory,
                         const std::vector<AxisRef>& pieces)
    : pieces_(pieces) {
  if (pieces.empty() || pieces.size() > UnevenStates::kMostPermuted) return;
  for (std::unique_ptr<Graph>& graph : graphs_) {
    graph = std::make_unique<Graph>(shape, element_bytes, costs, bounded_memory, pieces);
  }
}
UnevenTimes::~UnevenTimes() = default;

void UnevenTimes::add(const TensorLayout& layout) {
  if (graphs_[0] == nullptr || !consists_of(layout, pieces_)) return;
  for (std::size_t i = 0; i < graphs_.size(); ++i) {
    const bool is_met = layout.reduction == Reduction::kSum || static_cast<std::size_t>(layout.reduction) == i;
    if (is_met) graphs_[i]->add(layout);
  }
}

std::optional<Picoseconds> UnevenTimes::time(const TensorLayout& from, const TensorLayout& to) {
  if (graphs_[0] == nullptr) return std::nullopt;
  if (!consists_of(from, pieces_) || !consists_of(to, pieces_)) return std::nullopt;
  const Reduction reduction = from.reduction == Reduction::kSum ? to.reduction : from.reduction;
  if (from.reduction != Reduction::kSum && to.reduction != Reduction::kSum && from.reduction != to.reduction) {
    return std::nullopt;
  }
  Graph& graph = *graphs_[static_cast<std::size_t>(reduction)];
  const std::uint32_t source = graph.add(from);
  const std::uint32_t target = graph.add(to);
  const std::int64_t bound = graph.is_bounded ? std::max(graph.sizes[source], graph.sizes[target]) : INT64_MAX;
  const std::vector<Picoseconds>& row = graph.row(source, bound);
  if (target >= row.size() || row[target] < 0) return std::nullopt;
  return row[target];
}

}  // namespace shardplan
