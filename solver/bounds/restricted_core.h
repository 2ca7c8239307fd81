#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/bounds/dual_bound.h"
#include "solver/core/core_problem.h"

namespace shardplan {

/// A core with some of another's values, at least one per node: the same nodes, edges and times, smaller lists and
/// matrices. What all values left of a segment hold is taken off the limits.
struct RestrictedCore {
  CoreProblem core;
  std::vector<std::uint32_t> values;  // by value of `core`: the value of the same node that it was

  /// A choice of this core in the whole one, and back: the cheapest where a value is gone.
  CoreChoice expand(const CoreChoice& choice) const;
  CoreChoice nearest(const CoreChoice& whole) const;
};
/// Nothing if its matrices would have more than `most_entries`: equal edges share a matrix only as long as their ends
/// keep the same values.
std::optional<RestrictedCore> restrict_core(const CoreProblem& core, const std::vector<std::uint8_t>& alive,
                                            std::size_t most_entries);

/// Where a bound of the whole core stood, for one of the restricted core to continue from.
DualBound::State restrict_state(const CoreProblem& core, const RestrictedCore& restricted,
                                const DualBound::State& state);

}  // namespace shardplan
