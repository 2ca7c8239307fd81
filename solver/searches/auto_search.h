#pragma once

#include <memory>

#include "solver/search.h"

namespace shardplan {

/// What a search on the reduced problem is made of.
struct AutoSearchOptions {
  bool presolve = true;   // false: only what the core's form requires
  bool is_exact = true;   // branch and bound where the core is small
  bool has_bound = true;  // false: neighbourhood searches only, no bound
};

/// "auto" and "local": reduce the problem, first without memory where memory may not bind, and search what is left with
/// all means.
std::unique_ptr<Search> make_auto_search(const AutoSearchOptions& options = {});

}  // namespace shardplan
