#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "solver/search.h"

namespace shardplan {

/// One way to search, with all that the rest of the program needs to know of it. Help texts, the model language's
/// `search_mode`, the planner and the tests read this list: a new search is its file and one row here.
struct SearchEntry {
  std::string_view name;         // what --search is given
  std::string_view search_mode;  // the model language's name, where MindSpore has one of its own
  /// Whether its bound says how good its choice is. If not, the planner seeks a bound beside it.
  bool gives_bound = false;
  /// Whether it decides every problem that is small enough, given the work.
  bool is_exact = false;
  /// Whether the planner may run it again from starts of its own (planner/search/guided_search.h). The others are run as they
  /// are, so that what they find says something about them.
  bool takes_guidance = false;
  std::string_view description;  // one line, for --help and the schema
  std::unique_ptr<Search> (*make)() = nullptr;
};

/// All searches, the default one first.
std::span<const SearchEntry> search_list();
/// The search that runs if none is asked for; it is the strongest.
inline constexpr std::string_view kDefaultSearch = "auto";

/// Nullptr if there is none of that name.
const SearchEntry* find_search(std::string_view name);
/// The same, made.
std::unique_ptr<Search> make_search(std::string_view name);
/// The names, for messages and tests.
std::vector<std::string> search_names();

}  // namespace shardplan
