#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardplan {

/// Named figures of one stage of a search ("presolve", "dual", ...), in the order in which they were made, for --verbose
/// and --json; docs/search.md says what each means. They depend on the problem, the options and the seed alone.
struct StageStatistics {
  std::string stage;
  std::vector<std::pair<std::string, std::int64_t>> figures;
};

}  // namespace shardplan
