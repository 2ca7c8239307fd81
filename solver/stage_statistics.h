#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardplan {

/// Named figures of one stage of a search ("presolve", "dual", ...), in the order of their creation, for --verbose
/// and --json; docs/search.md explains them. They depend only on the problem, the options and the seed.
struct StageStatistics {
  std::string stage;
  std::vector<std::pair<std::string, std::int64_t>> figures;
};

}  // namespace shardplan
