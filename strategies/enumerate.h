#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

/// Whether at most a fifth of the buffers of that many pieces is padding.
bool wastes_little(std::int64_t extent, std::int64_t pieces);

/// Which cuts in unequal pieces (layouts/uneven.h) are candidates.
enum class UnevenCuts {
  kNone,
  /// A factor of size N in n pieces of c = ceil(N / n), if no piece is empty, at most a fifth of the n c positions is
  /// padding, and the mesh's pieces cannot cut the factor into n or more equal pieces: sizes that divide have no
  /// further candidates.
  kWhereNothingElseFits,
};

/// The least number of pieces that is more than any candidate has of a factor on so many devices, and why none has it.
struct NextCut {
  std::int64_t pieces = 0;
  std::string reason;  // "8 does not divide it", "pieces of 2 would leave 2 of them empty"
};

/// Nothing for a factor that all devices can cut. Numbers of pieces are divisors of `num_devices`.
std::optional<NextCut> next_cut(const Operation& operation, std::size_t factor, std::int64_t num_devices,
                                UnevenCuts uneven);

/// No list is longer; 216 = 6^3 is a batched matmul on three pieces.
inline constexpr std::size_t kMaxCandidates = 2048;

/// All legal assignments of the mesh's pieces to the operator's factors: each piece cuts one factor, or carries a
/// partial sum through (only if `groups` allows it, and never through a contraction), or repeats the work. Within a
/// factor the pieces stay in the order of `pieces` (major to minor). The order is fixed: the first factors first,
/// repeated work last.
Candidates enumerate_strategies(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                const PartialGroups& groups, UnevenCuts uneven = UnevenCuts::kNone);

}  // namespace shardplan
