#include "planner/overlap/crossed_choices.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardplan {
namespace {

using Part = std::vector<NodeId>;

class Components {
 public:
  explicit Components(const StrategyProblem& problem) : neighbours_(problem.nodes.size()) {
    for (const ProblemEdge& edge : problem.edges) {
      neighbours_[edge.from].push_back(edge.to);
      neighbours_[edge.to].push_back(edge.from);
    }
  }

  /// The components of the nodes in which two choices differ, largest first; of equal ones that with the first node.
  std::vector<Part> of_difference(const Choice& a, const Choice& b) const {
    IdVector<NodeId, char> is_left;
    for (const NodeId node : neighbours_.ids()) is_left.push_back(a.strategy[node] != b.strategy[node]);
    std::vector<Part> parts;
    for (const NodeId first : neighbours_.ids()) {
      if (is_left[first] == 0) continue;
      is_left[first] = 0;
      Part part = {first};
      for (std::size_t i = 0; i < part.size(); ++i) {
        for (const NodeId next : neighbours_[part[i]]) {
          if (is_left[next] == 0) continue;
          is_left[next] = 0;
          part.push_back(next);
        }
      }
      parts.push_back(std::move(part));
    }
    std::stable_sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) { return x.size() > y.size(); });
    return parts;
  }

 private:
  IdVector<NodeId, std::vector<NodeId>> neighbours_;
};

/// `into` with the strategies that `from` has in a part.
Choice with_part(Choice into, const Choice& from, const Part& part) {
  for (const NodeId node : part) into.strategy[node] = from.strategy[node];
  return into;
}

}  // namespace

std::vector<Choice> crossed_choices(const StrategyProblem& problem, const Choice& center,
                                    std::span<const Choice> others, std::size_t most_parts) {
  const Components components(problem);
  std::vector<Choice> crossed;
  std::set<std::vector<StrategyId>> seen;
  const auto key = [](const Choice& choice) {
    return std::vector<StrategyId>(choice.strategy.begin(), choice.strategy.end());
  };
  seen.insert(key(center));
  for (const Choice& other : others) seen.insert(key(other));
  const auto add = [&](Choice choice) {
    if (seen.insert(key(choice)).second && evaluate(problem, choice).feasible) crossed.push_back(std::move(choice));
  };
  for (const Choice& other : others) {
    const std::vector<Part> parts = components.of_difference(center, other);
    for (std::size_t i = 0; i < std::min(most_parts, parts.size()); ++i) {
      add(with_part(center, other, parts[i]));
      add(with_part(other, center, parts[i]));
    }
  }
  return crossed;
}

}  // namespace shardplan
