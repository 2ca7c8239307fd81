#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

/// A choice that differs from another one in one node, and in what is cheapest around that then.
struct NearChoice {
  std::int64_t more = 0;  // that it costs, computation and communication; below 0: less
  Choice choice;
};

/// Which of them are of interest.
struct NearLimits {
  std::int64_t most_more = 0;    // none that costs more than this
  std::int64_t least_moved = 0;  // nor that where what single nodes and edges cost changes by less, all together
  std::size_t most = 0;          // so many
  std::uint64_t work = 0;  // nodes are tried, those first that communicate the most, until so many costs were read
  std::size_t most_of_part = 0;  // of those in which the same node or edge changes the most so many; 0: all
};

/// The choices near `center` that fit, cheapest first; of those that change as much and cost as much (copies of one thing,
/// axes of equal size) one. For every node and each of its other strategies, the neighbours take in turn what is cheapest
/// with that, then theirs, until nothing changes.
std::vector<NearChoice> near_choices(const StrategyProblem& problem, const Choice& center, const NearLimits& limits);

}  // namespace shardplan
