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
  bool complete = true;  // false: a limit shortened the list ("candidates: restricted")

  bool operator==(const Candidates&) const = default;
};

/// Which operand groups may be partial sums: by index of `rule.linear` and `rule.monotone`.
struct PartialGroups {
  std::vector<char> linear;
  std::vector<char> monotone;

  bool operator==(const PartialGroups&) const = default;
};

/// Whether at most a fifth of the buffers of that many pieces is padding.
bool wastes_little(std::int64_t extent, std::int64_t pieces);

/// Which splits into unequal pieces (layouts/uneven.h) are candidates.
enum class UnevenCuts {
  kNone,
  /// A factor of size N in n pieces of c = ceil(N / n), if no piece is empty, at most a fifth of the n c positions is
  /// padding, and the mesh's pieces cannot split the factor into n or more equal pieces: sizes that divide get no
  /// additional candidates.
  kWhereNothingElseFits,
};

/// For a factor that not all devices can shard: the least number of pieces beyond that of any candidate, and the
/// reason.
struct NextCut {
  std::int64_t pieces = 0;
  std::string reason;  // "8 does not divide it", "pieces of 2 would leave 2 of them empty"
};

/// Nothing for a factor that all devices can shard. Numbers of pieces are divisors of `num_devices`.
std::optional<NextCut> next_cut(const Operation& operation, std::size_t factor, std::int64_t num_devices,
                                UnevenCuts uneven);

/// The maximal length of a list; 216 = 6^3 is a batched matmul on three pieces.
inline constexpr std::size_t kMaxCandidates = 2048;

/// All legal assignments of the mesh's pieces to the operator's factors: each piece shards one factor, or carries a
/// partial sum through (only if `groups` allows it, and never through a contraction), or repeats the work. Within a
/// factor the pieces keep the order of `pieces` (major to minor). The order of the list is fixed: the first factors
/// first, repeated work last.
Candidates enumerate_strategies(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                const PartialGroups& groups, UnevenCuts uneven = UnevenCuts::kNone);

}  // namespace shardplan
