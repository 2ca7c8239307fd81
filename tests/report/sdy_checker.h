#pragma once

#include <string>

namespace shardplan {

/// Reads a module of the Shardy dialect as far as exported plans use it, following the dialect's grammar: one mesh,
/// functions with `sdy.sharding` on arguments and results, bodies of `sdy.sharding_constraint` and `return`. Checks
/// what Shardy's own verifier checks: axes exist in the mesh and are used once per sharding, sub-axes divide their axis
/// and neighbouring ones are merged, unreduced axes are in the mesh's order, a sharding has as many dimensions as its
/// tensor, symbols are unique. Returns "", or the first error with its line.
std::string sdy_fault(const std::string& text);

}  // namespace shardplan
