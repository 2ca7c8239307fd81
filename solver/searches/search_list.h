#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "solver/search.h"

namespace shardplan {

/// A search method, with everything the rest of the program needs to know about it. Help texts, the model language's
/// `search_mode`, the planner and the tests read this list: a new search is one file and one row here.
struct SearchEntry {
  std::string_view name;         // what --search is given
  std::string_view search_mode;  // the model language's name, if MindSpore has one
  /// Whether its bound is meaningful. If not, the planner computes a bound in parallel.
  bool gives_bound = false;
  /// Whether it solves every sufficiently small problem to optimality, given enough work.
  bool is_exact = false;
  /// Whether the planner may restart it from its own starting points (planner/search/guided_search.h). The others run
  /// unmodified, so that their results show what the method itself finds.
  bool takes_guidance = false;
  std::string_view description;  // one line, for --help and the schema
  std::unique_ptr<Search> (*make)() = nullptr;
};

/// All searches, the default one first.
std::span<const SearchEntry> search_list();
/// The default search, which is the strongest.
inline constexpr std::string_view kDefaultSearch = "auto";

/// Nullptr if there is none with that name.
const SearchEntry* find_search(std::string_view name);
/// Creates that search.
std::unique_ptr<Search> make_search(std::string_view name);
/// The names, for messages and tests.
std::vector<std::string> search_names();

}  // namespace shardplan
