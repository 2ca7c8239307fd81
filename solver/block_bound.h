#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "solver/search.h"

namespace shardplan {

/// A bound on the cost of any choice, also with different choices for the copies of a block, computed from a few of
/// the copies.
struct BlockBound {
  std::int64_t bound = 0;     // of the objective
  std::size_t blocks = 0;     // blocks that the problem was split into
  std::size_t different = 0;  // number of different blocks, each searched once
};

/// `ties` maps every node to its set of copies, as for `tied_problem`. Memory limits are ignored, which keeps the
/// bound valid. `search` is given each different block with `options`, so its limits are per block. Nothing if the
/// problem does not repeat often enough, or its blocks are not alike. Linear in the problem, with a small constant.
std::optional<BlockBound> block_bound(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties,
                                      const Search& search, const SearchOptions& options);

}  // namespace shardplan
