#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "planner/overlap/step_bound.h"
#include "planner/search/level_search.h"

namespace shardplan {

/// A gap that is small enough to stop.
inline constexpr double kTightBound = 0.01;

/// Whether a value is at most this fraction above a bound.
inline bool is_near(Picoseconds value, Picoseconds bound, double share) {
  return static_cast<double>(value) <= (1 + share) * static_cast<double>(bound);
}

/// Input of the computation of a bound on the step.
struct StepProof {
  const StepBound& bound;
  /// Sets of nodes that take one strategy; not set: nodes are independent.
  std::optional<IdVector<NodeId, NodeId>> ties;
  LevelOptions options;      // of each search
  Picoseconds shortest = 0;  // step of the best plan
  Picoseconds known = 0;     // a known bound, at least that of `StepBound::weights_of_slowdown`
  int most_rounds = 1;       // maximal number of searches
};

struct ProvenStep {
  Picoseconds bound = 0;              // lower bound on the step of all choices
  OverlapWeights weights;             // the weights that prove it
  std::vector<OverlapWeights> tried;  // all weights that were considered
  int rounds = 0;                     // searches
  std::vector<Choice> shorter;        // choices found on the way whose steps could be shorter than the best plan's
  std::vector<Choice> longer;         // the other choices found on the way
};

/// Looks for weights (planner/overlap/step_bound.h) whose weighted sum has a large minimum over all choices, starting
/// from the weights that are best for `choices`.
ProvenStep prove_step(const StepProof& proof, const std::vector<Choice>& choices);

/// The minimum of the weighted sum over all choices, of which `start` is one; nothing if no choice fits.
std::optional<LevelResult> least_sum(const StepProof& proof, const OverlapWeights& weights,
                                     const std::optional<Choice>& start);

}  // namespace shardplan
