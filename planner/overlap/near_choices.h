#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

/// A choice that differs from another one in one node, and around it in whatever is then cheapest.
struct NearChoice {
  std::int64_t more = 0;  // its additional cost, computation plus communication; negative: it is cheaper
  Choice choice;
};

/// Which near choices are of interest.
struct NearLimits {
  std::int64_t most_more = 0;    // no choice that costs more than this in addition
  std::int64_t least_moved = 0;  // no choice for which the costs of single nodes and edges change by less in sum
  std::size_t most = 0;          // at most this many
  std::uint64_t work = 0;        // nodes are tried in order of decreasing communication until this many costs were read
  std::size_t most_of_part = 0;  // at most this many in which the same node or edge changes the most; 0: no limit
};

/// The feasible choices near `center`, cheapest first; of choices with equal changes and equal costs (copies of one
/// thing, axes of equal size) only one. For every node and each of its other strategies, the neighbours in turn take
/// what is then cheapest, then their neighbours, until nothing changes.
std::vector<NearChoice> near_choices(const StrategyProblem& problem, const Choice& center, const NearLimits& limits);

/// The choice with that node as it is, and its neighbours, then theirs in turn, as is then cheapest; nothing if that is
/// not feasible.
std::optional<Choice> adapted_around(const StrategyProblem& problem, const Choice& choice, NodeId node);

}  // namespace shardplan
