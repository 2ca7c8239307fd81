#include "planner/level_comparison.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/plan_notices.h"

namespace shardplan {
namespace {

/// A level that was searched again can beat another one that was not.
constexpr int kMostRounds = 3;

/// The plan, which says so if an interruption left it unproven.
Plan noting_interruption(Plan plan, const std::stop_token& stop) {
  if (stop.stop_requested() && is_found(plan.status) && open_gap(plan).value_or(1) > 0) note_interruption(plan);
  return plan;
}

}  // namespace

std::vector<Plan> plans_of_levels(const ModelPlanner& planner, std::string_view search, std::stop_token stop) {
  std::vector<Plan> plans;
  // A search that started from another level's plan could end elsewhere, and with a longer step.
  for (const Level level : kLevels) plans.push_back(noting_interruption(planner.plan(level, search, stop), stop));
  plans.push_back(noting_interruption(planner.plan(planner.options().level, "propagation", stop), stop));
  for (int round = 0; round < kMostRounds; ++round) {
    bool again = false;
    for (std::size_t at = 0; at < std::size(kLevels); ++at) {
      const auto beats = [&](const Plan& other) { return is_better(other, plans[at]); };
      if (stop.stop_requested() || std::none_of(plans.begin(), plans.end(), beats)) continue;
      Plan better = noting_interruption(planner.plan(kLevels[at], search, stop, {}, plans), stop);
      if (!is_better(better, plans[at])) continue;  // what beats it is no candidate here
      plans[at] = std::move(better);
      again = true;
    }
    if (!again) break;
  }
  return plans;
}

}  // namespace shardplan
