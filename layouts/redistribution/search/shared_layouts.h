#pragma once

#include <cstdint>

#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// At least the number of shards of every layout of a tensor that is in both spaces: 2 of a dimension of 240 that is
/// (6:, 40:) in one and (8:, 30:) in the other. Pieces shard the beginning of a slot, or whole slots and the beginning
/// of the next, so what both spaces can shard begins where a slot of both does. The prime factors of the number of
/// devices are bounded one by one. Time: for each dimension and prime factor, slots x divisors of the number of devices.
std::int64_t most_shards_in_both(const LayoutSpace& a, const LayoutSpace& b, const Shape& shape);

/// Proves for some pairs of states that no path joins them on which every state has at least `least_shards` shards: a
/// path from one space to another leads through a layout of both, and none has so many. False: nothing is known.
bool are_spaces_apart(const RedistributionGraph& graph, const Shape& shape, std::uint32_t source, std::uint32_t target,
                      std::int64_t least_shards);

}  // namespace shardplan
