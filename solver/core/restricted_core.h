#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/core/core_problem.h"

namespace shardplan {

/// A core with a subset of another core's values, at least one per node: the same nodes, edges and times, with
/// shorter lists and smaller matrices. The bytes that all remaining values of a segment have in common are subtracted
/// from the limits.
struct RestrictedCore {
  CoreProblem core;
  std::vector<std::uint32_t> values;  // by value of `core`: the corresponding value of the same node in the full core

  /// A choice of this core as one of the full core.
  CoreChoice expand(const CoreChoice& choice) const;
  /// A choice of the full core as one of this core: a removed value is replaced by the node's cheapest one.
  CoreChoice nearest(const CoreChoice& whole) const;
  /// If this is a restriction of `larger`'s core, itself a restriction: numbers values as in the core that `larger`
  /// restricts.
  void count_values_as(const RestrictedCore& larger);
};

/// Building a smaller core pays off if at most this share of the values is left; it costs about this many passes.
inline constexpr double kWorthRestricting = 0.7;
inline constexpr std::uint64_t kPassesToRestrict = 4;

/// Keeps the values with a 1 in `alive` (by value of `core`; at least one per node). Nothing if the matrices would
/// have more than `most_entries`: equal edges share a matrix only as long as their ends keep the same values.
std::optional<RestrictedCore> restrict_core(const CoreProblem& core, const std::vector<std::uint8_t>& alive,
                                            std::size_t most_entries);

}  // namespace shardplan
