// How tight are the plans of the three levels, and does one beat another level's plan in that level's objective?
//
// For every model: step, communication, peak, gap and seconds of levels 0, 1 and 2 and of propagation. If a plan is
// better than a level's in that level's objective, the program reports it and exits with 1. The search spends the
// default work of `plan`, so the table is the same everywhere except for the seconds.
//
// Arguments: model files (default: configs/*.yaml), preceded by an optional --cluster NAME that applies to all of them.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/each_model.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/level_comparison.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// Returns the number of contradictions.
int run(const std::string& path, const std::optional<std::string>& cluster) {
  const auto begin = std::chrono::steady_clock::now();
  const auto model = std::make_shared<const Model>(read_model(path));
  const ModelPlanner planner(model,
                             job_cluster(*model, {.cluster = cluster, .device_num = {}, .rank_table = {}}).cluster, {});
  const std::vector<Plan> plans = plans_of_levels(planner, kDefaultSearch);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}, {} devices, {:.1f} s\n", path, planner.mesh().num_devices(), seconds);
  int contradictions = 0;
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const Plan& plan = plans[at];
    const std::string name = at < 3 ? fmt::format("level {}", at) : "propagation";
    if (plan.strategies.empty()) {
      fmt::print("  {:<12} {}\n", name, to_string(plan.status));
      continue;
    }
    const std::optional<double> open = gap(plan.cost, plan.bound);
    fmt::print("  {:<12} step {:>9}  communication {:>9}  peak {:>9}  gap {}\n", name,
               format_time(plan.time.additive()), format_time(plan.time.communication), format_bytes(plan.memory.peak),
               open ? fmt::format("{:.2f} %", 100 * *open) : "-");
    for (std::size_t other = 0; at < 3 && other < plans.size(); ++other) {
      if (!is_better(plans[other], plan)) continue;
      ++contradictions;
      fmt::print("    FAULT: beaten by {}\n", other < 3 ? fmt::format("level {}", other) : "propagation");
    }
  }
  return contradictions;
}

}  // namespace
}  // namespace shardplan

int main(int argc, char** argv) {
  std::vector<std::string> shipped;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() == ".yaml") shipped.push_back(entry.path().string());
  }
  std::sort(shipped.begin(), shipped.end());
  return shardplan::run_on_each_model(argc, argv, shipped, shardplan::run);
}
