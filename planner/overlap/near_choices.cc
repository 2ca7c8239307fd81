#include "planner/overlap/near_choices.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace shardplan {
namespace {

/// A sum of costs in which forbidden ones are counted separately.
struct Sum {
  int forbidden = 0;
  std::int64_t cost = 0;

  void add(std::int64_t more) {
    if (more >= kForbidden) {
      ++forbidden;
    } else {
      cost += more;
    }
  }
  friend bool operator<(const Sum& a, const Sum& b) {
    return a.forbidden != b.forbidden ? a.forbidden < b.forbidden : a.cost < b.cost;
  }
};

class Neighbourhood {
 public:
  Neighbourhood(const StrategyProblem& problem, const Choice& center)
      : problem_(problem), center_(center), now_(center), around_(problem.nodes.size()) {
    for (const EdgeId id : problem.edges.ids()) {
      const ProblemEdge& edge = problem.edges[id];
      around_[edge.from].push_back(id);
      if (edge.to != edge.from) around_[edge.to].push_back(id);
    }
  }

  std::uint64_t work() const { return work_; }

  /// All nodes, in order of decreasing communication around them.
  std::vector<NodeId> nodes() const {
    IdVector<NodeId, std::int64_t> communication(problem_.nodes.size(), 0);
    for (const NodeId node : problem_.nodes.ids()) {
      communication[node] += table(node).costs[center_.strategy[node].value()].communication;
      for (const EdgeId edge : around_[node]) communication[node] += cost_of(edge, center_);
    }
    std::vector<NodeId> nodes;
    for (const NodeId node : problem_.nodes.ids()) nodes.push_back(node);
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](NodeId a, NodeId b) { return communication[a] > communication[b]; });
    return nodes;
  }

  /// A node or an edge.
  struct Part {
    bool is_edge = false;
    std::size_t number = 0;
    auto operator<=>(const Part&) const = default;
  };
  /// The consequences of a node's change to another strategy.
  struct Move {
    std::int64_t more = 0;
    std::int64_t moved = 0;
    std::vector<std::pair<NodeId, StrategyId>> changes;
    Part largest = {};  // the node or edge that changes the most
    std::int64_t moved_there = 0;
  };
  /// The center with that node as it is and what is around it as is cheapest.
  Choice adapted_around(NodeId node) {
    adapt_around(node);
    return now_;
  }

  /// Nothing is forbidden in it if true.
  bool move(NodeId node, StrategyId strategy, Move& move) {
    changed_.clear();
    set(node, strategy);
    adapt_around(node);
    const bool is_allowed = describe(move);
    for (const NodeId other : changed_) now_.strategy[other] = center_.strategy[other];
    return is_allowed;
  }

 private:
  /// The propagation stops after this many rounds.
  static constexpr std::size_t kMostTurns = 60;

  const StrategyTable& table(NodeId node) const { return problem_.strategy_tables[problem_.nodes[node].strategies]; }

  std::int64_t cost_of(EdgeId id, const Choice& choice) const {
    const ProblemEdge& edge = problem_.edges[id];
    return problem_.matrices[edge.matrix].at(choice.strategy[edge.from].value(), choice.strategy[edge.to].value());
  }

  void set(NodeId node, StrategyId strategy) {
    now_.strategy[node] = strategy;
    if (std::find(changed_.begin(), changed_.end(), node) == changed_.end()) changed_.push_back(node);
  }

  void adapt_around(NodeId node) {
    std::vector<NodeId> waiting;
    push_neighbours(node, node, waiting);
    for (std::size_t next = 0; next < waiting.size() && next < kMostTurns; ++next) {
      const NodeId other = waiting[next];
      const StrategyId cheapest = cheapest_strategy(other);
      if (cheapest == now_.strategy[other]) continue;
      set(other, cheapest);
      push_neighbours(other, node, waiting);
    }
  }

  void push_neighbours(NodeId of, NodeId fixed, std::vector<NodeId>& waiting) const {
    for (const EdgeId id : around_[of]) {
      const ProblemEdge& edge = problem_.edges[id];
      const NodeId other = edge.from == of ? edge.to : edge.from;
      if (other != fixed && other != of) waiting.push_back(other);
    }
  }

  StrategyId cheapest_strategy(NodeId node) {
    const StrategyTable& strategies = table(node);
    sums_.assign(strategies.costs.size(), {});
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      sums_[s].add(strategies.costs[s].computation);
      sums_[s].add(strategies.costs[s].communication);
    }
    for (const EdgeId id : around_[node]) {
      const ProblemEdge& edge = problem_.edges[id];
      const CostMatrix& matrix = problem_.matrices[edge.matrix];
      for (std::size_t s = 0; s < sums_.size(); ++s) {
        const std::size_t row = edge.from == node ? s : now_.strategy[edge.from].value();
        const std::size_t column = edge.to == node ? s : now_.strategy[edge.to].value();
        sums_[s].add(matrix.at(row, column));
      }
    }
    work_ += sums_.size() * (1 + around_[node].size());
    StrategyId best = now_.strategy[node];
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      if (sums_[s] < sums_[best.value()]) best = StrategyId(s);
    }
    return best;
  }

  bool describe(Move& move) const {
    move = {};
    int forbidden = 0;
    const auto differ = [&](Part part, std::int64_t before, std::int64_t after) {
      if (after >= kForbidden) ++forbidden;
      const std::int64_t moved = std::abs(after - before);
      move.more += after - before;
      move.moved += moved;
      if (moved <= move.moved_there) return;
      move.largest = part;
      move.moved_there = moved;
    };
    const auto is_changed = [&](NodeId node) { return now_.strategy[node] != center_.strategy[node]; };
    for (const NodeId node : changed_) {
      if (!is_changed(node)) continue;
      const Cost& before = table(node).costs[center_.strategy[node].value()];
      const Cost& after = table(node).costs[now_.strategy[node].value()];
      differ({false, node.value()}, before.computation, after.computation);
      differ({false, node.value()}, before.communication, after.communication);
      for (const EdgeId id : around_[node]) {
        const ProblemEdge& edge = problem_.edges[id];
        if (edge.from != node && is_changed(edge.from)) continue;  // counted there
        differ({true, id.value()}, cost_of(id, center_), cost_of(id, now_));
      }
      move.changes.emplace_back(node, now_.strategy[node]);
    }
    return forbidden == 0;
  }

  const StrategyProblem& problem_;
  const Choice& center_;
  Choice now_;
  IdVector<NodeId, std::vector<EdgeId>> around_;
  std::vector<NodeId> changed_;
  std::vector<Sum> sums_;
  std::uint64_t work_ = 0;
};

}  // namespace

std::optional<Choice> adapted_around(const StrategyProblem& problem, const Choice& choice, NodeId node) {
  Choice adapted = Neighbourhood(problem, choice).adapted_around(node);
  return evaluate(problem, adapted).feasible ? std::optional(std::move(adapted)) : std::nullopt;
}

std::vector<NearChoice> near_choices(const StrategyProblem& problem, const Choice& center, const NearLimits& limits) {
  Neighbourhood neighbourhood(problem, center);
  std::vector<Neighbourhood::Move> moves;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const NodeId node : neighbourhood.nodes()) {
    if (neighbourhood.work() >= limits.work) break;
    for (std::size_t s = 0; s < problem.num_strategies(node); ++s) {
      if (s == center.strategy[node].value()) continue;
      Neighbourhood::Move move;
      if (!neighbourhood.move(node, StrategyId(s), move)) continue;
      if (move.more > limits.most_more || move.moved < limits.least_moved) continue;
      if (seen.insert({move.more, move.moved}).second) moves.push_back(std::move(move));
    }
  }
  std::stable_sort(moves.begin(), moves.end(), [](const auto& a, const auto& b) { return a.more < b.more; });
  std::vector<NearChoice> near;
  std::map<Neighbourhood::Part, std::size_t> of_parts;
  for (const Neighbourhood::Move& move : moves) {
    if (near.size() == limits.most) break;
    if (limits.most_of_part > 0 && of_parts[move.largest] >= limits.most_of_part) continue;
    Choice choice = center;
    for (const auto& [node, strategy] : move.changes) choice.strategy[node] = strategy;
    if (!evaluate(problem, choice).feasible) continue;
    ++of_parts[move.largest];
    near.push_back({move.more, std::move(choice)});
  }
  return near;
}

}  // namespace shardplan
