#pragma once

#include <memory>

#include "solver/search.h"

namespace shardplan {

/// "elimination": exact dynamic programming on the reduced problem (solver/bounds/elimination.h), where every table stays
/// below a limit (chains, trees, ladders, small cores); else the answer is the start, or kNoPlanFound, with the
/// presolve's bound.
///
/// Memory enters by prices: with prices at which the cheapest choice fits, and costs as much as the priced bound, the
/// choice is proven; else the best fitting choice met is returned with the best priced bound.
std::unique_ptr<Search> make_elimination_search();

}  // namespace shardplan
