#pragma once

#include <cstdint>
#include <span>

#include "base/integer.h"
#include "base/units.h"
#include "layouts/collective.h"

namespace shardplan {

/// One dimension of a torus, a ring or a line of links, as the groups of a collective lie on it.
struct TorusDimension {
  std::int64_t members = 2;  // places of a group along it
  Int128 latency = 0;        // picoseconds: of all hops from one end to the other, or of half the way around
  std::int64_t rate = 1;     // bytes per second that a member can receive along it, from both sides together
};

/// A ring or a line of links of `link_rate` bytes per second in each direction, `count` places long. Groups that overlap
/// share the links: as lines, `overlapping` of them; on a ring also the long way around, all `around` of them.
TorusDimension torus_dimension(bool is_ring, std::int64_t count, std::int64_t members, std::int64_t distance,
                               std::int64_t overlapping, std::int64_t around, Picoseconds hop, std::int64_t link_rate);

/// latency + bytes * above / below, of the bytes of a whole group.
struct TorusTime {
  Int128 latency = 0;  // picoseconds
  Int128 above = 0;
  Int128 below = 1;
};

/// A collective of groups of `size` devices along dimensions of a torus, whose members have `below` devices each. With p
/// members along a dimension of rate R, P in all, and m bytes of the P members that meet:
///
///     all_gather, reduce_scatter   the longest of (P-1)/P m / (sum of R) and, for each dimension, (p-1)/P m / R
///     all_reduce                   twice that
///     all_to_all                   the longest of floor(p/2) ceil(p/2) / (p P) m / R of the dimensions
///     permute                      twice that: all devices send to the other end, or half the way around
///
/// All dimensions carry data at the same time: pieces of a tensor take them in different orders ("How to Scale Your Model",
/// Austin et al., 2025, chapter 3: an all_gather over n axes takes V / (n W), an all_to_all along a ring V / (4 W)). No
/// dimension is given less than what must cross its links: p-1 of the p slabs of the torus, for each slab.
TorusTime torus_time(CollectiveKind kind, std::span<const TorusDimension> dimensions, std::int64_t below,
                     std::int64_t size);

}  // namespace shardplan
