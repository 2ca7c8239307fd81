#pragma once

#include <memory>

#include "solver/search.h"

namespace shardplan {

/// Options of a search on the reduced problem.
struct AutoSearchOptions {
  bool presolve = true;   // false: only what the core's format requires
  bool is_exact = true;   // branch and bound if the core is small
  bool has_bound = true;  // false: neighbourhood searches only, no bound
};

/// "auto" and "local": reduce the problem, first without memory limits if they may not be binding, and search the
/// rest with all engines.
std::unique_ptr<Search> make_auto_search(const AutoSearchOptions& options = {});

}  // namespace shardplan
