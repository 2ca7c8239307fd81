#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "planner/overlap/step_bound.h"
#include "planner/search/level_search.h"

namespace shardplan {

/// A bound this near to the step will do.
inline constexpr double kTightBound = 0.01;

/// Whether a value is at most this share above a bound.
inline bool is_near(Picoseconds value, Picoseconds bound, double share) {
  return static_cast<double>(value) <= (1 + share) * static_cast<double>(bound);
}

/// What is to be proven of steps.
struct StepProof {
  const StepBound& bound;
  /// Sets of nodes that take one strategy; nothing: each its own.
  std::optional<IdVector<NodeId, NodeId>> ties;
  LevelOptions options;      // of each search
  Picoseconds shortest = 0;  // step of the best plan
  Picoseconds known = 0;     // a bound; of `StepBound::weights_of_slowdown` at least
  int most_rounds = 1;       // searches, at most
};

struct ProvenStep {
  Picoseconds bound = 0;        // no choice has a shorter step
  OverlapWeights weights;       // that say so
  int rounds = 0;               // searches
  std::vector<Choice> shorter;  // found on the way, whose steps may be shorter than the best plan's
};

/// Looks for weights (planner/overlap/step_bound.h) of which the least sum of all choices is large, beginning with those
/// that suit `choices`.
ProvenStep prove_step(const StepProof& proof, const std::vector<Choice>& choices);

/// The least sum of all choices, of which `start` is one; nothing where none fits.
std::optional<LevelResult> least_sum(const StepProof& proof, const OverlapWeights& weights,
                                     const std::optional<Choice>& start);

}  // namespace shardplan
