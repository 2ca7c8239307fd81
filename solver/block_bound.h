#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "solver/search.h"

namespace shardplan {

/// A bound on what any choice of a problem costs whose copies of a block may all differ, from a few of the copies.
struct BlockBound {
  std::int64_t bound = 0;     // of the objective
  std::size_t blocks = 0;     // that the problem was cut into
  std::size_t different = 0;  // of these, so many were searched
};

/// `ties` gives every node the number of the set of its copies, as for `tied_problem`. Memory limits are left out, which keeps
/// the bound true. `search` is given each different block with `options`, whose limits are thus for one of them. Nothing
/// if the problem does not repeat often enough, or its blocks are not alike. Linear in the problem, with a small constant.
std::optional<BlockBound> block_bound(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties,
                                      const Search& search, const SearchOptions& options);

}  // namespace shardplan
