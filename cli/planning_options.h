#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_table.h"
#include "planner/model_planner.h"

namespace shardplan {

/// The options that every command that plans takes, as given.
struct PlanningArguments {
  std::string model;
  std::optional<std::string> cluster;
  std::optional<int> level;
  std::string costs = "cluster";
  std::optional<std::string> search;
  std::uint64_t seed = 0;
  std::optional<double> time_limit;
  std::optional<std::uint64_t> work_limit;
  int threads = 1;
  std::optional<std::string> capacity;
  std::optional<double> memory_slack;
  std::vector<std::string> dims;
  std::vector<std::string> strategies;
  std::string memory = "bounded";
  std::string overlap = "on";
};

/// MODEL.
Option model_argument(PlanningArguments& arguments);
/// The options of what is planned and how it is searched, in two groups. `arguments` must outlive the table.
std::vector<OptionGroup> planning_options(PlanningArguments& arguments);

/// Reads the model and the cluster; precedence: options, the file, defaults. Throws InputError.
std::unique_ptr<ModelPlanner> make_planning(const PlanningArguments& arguments);

/// A plan and what it was planned with.
struct PreparedPlan {
  std::unique_ptr<ModelPlanner> planning;
  Plan plan;

  bool is_found() const { return plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible; }
};
/// MODEL.yaml is planned; the plan.json of an earlier run is read again, and everything in it follows anew from its model and
/// decisions. Throws InputError.
PreparedPlan plan_or_load(const PlanningArguments& arguments);

}  // namespace shardplan
