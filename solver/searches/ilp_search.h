#pragma once

#include <memory>

#include "solver/search.h"

namespace shardplan {

/// "ilp": the reduced problem as an integer linear programme, solved by GLPK. A variable for each value of each node
/// (one of them is 1) and for each pair of values of each edge (their sums over a row and a column are the values'
/// variables); a row for each time. Exact, and independent of the other searches; for small problems: beyond some ten
/// thousand pairs the answer is kNoPlanFound with the presolve's bound. GLPK counts no work: a work limit bounds its
/// branches roughly.
std::unique_ptr<Search> make_ilp_search();

}  // namespace shardplan
