#pragma once

#include <memory>
#include <stop_token>

#include "planner/model_planner.h"

namespace shardplan {

/// A plan and its planner.
struct ShapedPlan {
  std::unique_ptr<ModelPlanner> planner;
  Plan plan;
};

/// `mesh: auto`: plans the model at `options.level` in every shape of the cluster's mesh and returns the best plan:
/// at level 2 the one with the shortest step, else one that no other beats (`is_better`); of equal ones the first.
/// `Plan::tried_shapes` lists the results, and the bound covers all shapes. The shapes share the time limit. Throws
/// InputError as ModelPlanner does.
ShapedPlan plan_best_shape(const std::shared_ptr<const Model>& model, const Cluster& cluster,
                           const PlanOptions& options, std::stop_token stop = {},
                           const ModelPlanner::Progress& progress = {});

}  // namespace shardplan
