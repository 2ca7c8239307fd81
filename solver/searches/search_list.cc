#include "solver/searches/search_list.h"

#include "solver/searches/auto_search.h"
#include "solver/searches/elimination_search.h"
#include "solver/searches/ilp_search.h"
#include "solver/searches/propagation_search.h"

namespace shardplan {
namespace {

constexpr SearchEntry kSearches[] = {
    {.name = kDefaultSearch,
     .search_mode = "auto",
     .gives_bound = true,
     .is_exact = true,
     .takes_guidance = true,
     .description = "all means in turn, with a proven bound",
     .make = [] { return make_auto_search(); }},
    {.name = "propagation",
     .search_mode = "sharding_propagation",
     .description = "one pass outwards from what is decided, then single moves",
     .make = make_propagation_search},
    {.name = "elimination",
     .search_mode = "dynamic_programming",
     .gives_bound = true,
     .description = "exact dynamic programming, memory by prices",
     .make = make_elimination_search},
    {.name = "ilp",
     .search_mode = "ilp",
     .gives_bound = true,
     .is_exact = true,
     .description = "an integer linear programme, for small problems",
     .make = make_ilp_search},
    {.name = "local",
     .search_mode = "local",
     .description = "neighbourhood searches alone, without a bound",
     .make = [] { return make_auto_search({.presolve = true, .is_exact = false, .has_bound = false}); }},
};

}  // namespace

std::span<const SearchEntry> search_list() { return kSearches; }

const SearchEntry* find_search(std::string_view name) {
  for (const SearchEntry& entry : kSearches) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::unique_ptr<Search> make_search(std::string_view name) {
  const SearchEntry* const entry = find_search(name);
  return entry != nullptr ? entry->make() : nullptr;
}

std::vector<std::string> search_names() {
  std::vector<std::string> names;
  for (const SearchEntry& entry : kSearches) names.emplace_back(entry.name);
  return names;
}

}  // namespace shardplan
