#pragma once

#include <cstddef>
#include <vector>

#include "strategies/strategy.h"

namespace shardplan {

/// The strategies of one operator that a search may choose from.
struct Candidates {
  std::vector<Strategy> strategies;
  bool complete = true;  // false: a limit cut the list ("candidates: restricted")

  bool operator==(const Candidates&) const = default;
};

/// Which operand groups may come as partial sums: by index of `rule.linear` and `rule.monotone`.
struct PartialGroups {
  std::vector<char> linear;
  std::vector<char> monotone;

  bool operator==(const PartialGroups&) const = default;
};

/// No list is longer; 216 = 6^3 is a batched matmul on three pieces.
inline constexpr std::size_t kMaxCandidates = 2048;

/// All legal assignments of the mesh's pieces to the operator's factors: each piece cuts one factor, or carries a
/// partial sum through (only if `groups` allows it, and never through a contraction), or repeats the work. Within a
/// factor the pieces stay in the order of `pieces` (major to minor). The order is fixed: the first factors first,
/// repeated work last.
Candidates enumerate_strategies(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                const PartialGroups& groups);

}  // namespace shardplan
