#pragma once

#include <string>

namespace shardplan {

/// Reads a module of the Shardy dialect as far as exported plans use it, after the dialect's grammar: one mesh, functions
/// with `sdy.sharding` on arguments and results, bodies of `sdy.sharding_constraint` and `return`. Checks what Shardy's own
/// verifier does: axes exist in the mesh, each is used once in a sharding, sub-axes divide their axis and neighbours are
/// joined, a sharding has as many dimensions as its tensor, symbols are unique. Gives "", or the first fault with its
/// line.
std::string sdy_fault(const std::string& text);

}  // namespace shardplan
