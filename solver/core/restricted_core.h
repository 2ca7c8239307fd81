#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/core/core_problem.h"

namespace shardplan {

/// A core with some of another's values, at least one per node: the same nodes, edges and times, smaller lists and
/// matrices. What all values left of a segment hold is taken off the limits.
struct RestrictedCore {
  CoreProblem core;
  std::vector<std::uint32_t> values;  // by value of `core`: the value of the same node that it was

  /// A choice of this core as one of the whole core.
  CoreChoice expand(const CoreChoice& choice) const;
  /// A choice of the whole core as one of this: where a value is gone, the node's cheapest one takes its place.
  CoreChoice nearest(const CoreChoice& whole) const;
  /// For a restriction of `larger`'s core, which is a restriction itself: the same as one of the core that `larger` restricts.
  void count_values_as(const RestrictedCore& larger);
};

/// A smaller core is worth making if at most this share of the values is left; it costs about so many passes.
inline constexpr double kWorthRestricting = 0.7;
inline constexpr std::uint64_t kPassesToRestrict = 4;

/// Keeps the values that have a 1 in `alive` (by value of `core`; at least one of each node). Nothing if the matrices
/// would have more than `most_entries`: equal edges share a matrix only as long as their ends keep the same values.
std::optional<RestrictedCore> restrict_core(const CoreProblem& core, const std::vector<std::uint8_t>& alive,
                                            std::size_t most_entries);

}  // namespace shardplan
