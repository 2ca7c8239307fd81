#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace shardplan {

/// The main function of a bench over models: BENCH [--cluster CLUSTER] [MODEL.yaml ...]; default: `defaults`. `run`
/// prints a model's table and returns its number of contradictions. Returns the exit code: 1 if there are any.
inline int run_on_each_model(
    int argc, char** argv, const std::vector<std::string>& defaults,
    const std::function<int(const std::string& path, const std::optional<std::string>& cluster)>& run) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  std::optional<std::string> cluster;
  if (paths.size() >= 2 && paths[0] == "--cluster") {
    cluster = paths[1];
    paths.erase(paths.begin(), paths.begin() + 2);
  }
  int contradictions = 0;
  for (const std::string& path : paths.empty() ? defaults : paths) {
    try {
      contradictions += run(path, cluster);
    } catch (const InputError& error) {
      fmt::print("{}: {}\n", path, error.what());
    }
  }
  return contradictions > 0 ? 1 : 0;
}

}  // namespace shardplan
