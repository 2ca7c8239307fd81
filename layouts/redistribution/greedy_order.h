#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardplan {

/// One step of the greedy order, between the digits of a tensor.
struct GreedyMove {
  enum class Kind {
    kSlice,     // `digit` is sharded by its target
    kExchange,  // `digit` is sharded by its target, which so far sharded the digit `from`
    kGather,    // `digit` is gathered
  };
  Kind kind = Kind::kSlice;
  std::size_t digit = 0;
  std::size_t from = 0;

  bool operator==(const GreedyMove&) const = default;
};

inline constexpr std::int64_t kNotSharded = -1;

/// The order in which MindSpore's operator inference (redistribution_operator_infer.cc) brings digits from one set of
/// axes to another. On both sides, each digit is sharded by at most one axis, and each axis shards at most one digit.
/// In rounds: slice what can be sliced and exchange what another digit holds, until neither is possible; then gather
/// what the target does not shard. If axes wait for each other in a cycle, the first digit is gathered. On three
/// digits:
///
///   from       to         moves
///   x . .      . x .      exchange 1 from 0
///   x . .      y . .      gather 0, slice 0
///   x y .      y x .      gather 0, exchange 0 from 1, slice 1
std::vector<GreedyMove> greedy_order(std::vector<std::int64_t> from, const std::vector<std::int64_t>& to);

}  // namespace shardplan
