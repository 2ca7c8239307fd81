#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan {

/// The engines of the portfolio: what one thread may run between two exchanges.
enum class Engine { kBound, kDive, kPart, kTrees, kBlocks, kExact };
inline constexpr Engine kEngines[] = {Engine::kBound, Engine::kDive,   Engine::kPart,
                                      Engine::kTrees, Engine::kBlocks, Engine::kExact};
/// "bound", "dive", "promising part", "tree neighbourhood", "block neighbourhood", "branch and bound".
std::string_view to_string(Engine engine);

/// What the choice of the engines depends on, besides the round and the thread.
struct PortfolioSituation {
  bool has_bound = true;          // false: neighbourhoods only
  bool uses_exact = false;        // a pass of the bound is so cheap that branch and bound pays
  bool shares_exact = false;      // branch and bound has a share of the rounds
  bool is_bound_settled = false;  // running the bound again would not raise it
  /// A choice is known, and parts may be searched; otherwise dives take their rounds, or trees beside branch and bound.
  bool searches_parts = true;
};

/// Which engine a thread runs in a round, both counted from 0:
///
///   without a bound   three rounds of trees, one of blocks; threads are out of step by one
///   exact             branch and bound, but every eighth round of the first thread improves the best choice: trees,
///                     blocks, promising part in turn
///   shared exact      six rounds of sixteen branch and bound, two bounds, one a promising part; trees and blocks the
///                     rest
///   otherwise         dive, trees, blocks, blocks, bound, trees, blocks, blocks; then the same with a promising part
///                     instead of the dive; every second thread swaps trees and blocks. Dives, parts and bounds last
///                     longer than the neighbourhoods, so all threads run them together and none waits.
///
/// Unless branch and bound gets nearly all rounds, a settled bound gives its round to a promising part.
Engine scheduled_engine(std::uint64_t round, int thread, const PortfolioSituation& situation);

}  // namespace shardplan
