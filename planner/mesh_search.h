#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <vector>

#include "layouts/device_mesh.h"
#include "planner/model_planner.h"

namespace shardplan {

/// The shapes of the mesh that a search tries: all ways to split its axes into `most` pieces in total (or into as
/// many as possible, if the axes cannot be split that far), at least one per axis. Major to minor; the first shape is
/// that of `search_pieces`. On node=8, nvlink=8:
///
///   {node, nvlink:(1)2, nvlink:(2)4}   {node, nvlink:(1)4, nvlink:(4)2}
///   {node:(1)2, node:(2)4, nvlink}     {node:(1)4, node:(4)2, nvlink}
///
/// Shapes with fewer pieces are omitted: a finer one contains all their strategies.
std::vector<std::vector<AxisRef>> mesh_shapes(const DeviceMesh& mesh, std::size_t most = 3);

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
