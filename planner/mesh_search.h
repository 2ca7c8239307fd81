#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <vector>

#include "layouts/device_mesh.h"
#include "planner/model_planner.h"

namespace shardplan {

/// The shapes that a mesh of the cluster's levels can be given for a search: all ways to cut its axes into `most` pieces, or
/// into as many as there are where no axis can be cut further; at least one for each axis. Major to minor, the first shape
/// that of `search_pieces`. On node=8, nvlink=8:
///
///   {node, nvlink:(1)2, nvlink:(2)4}   {node, nvlink:(1)4, nvlink:(4)2}
///   {node:(1)2, node:(2)4, nvlink}     {node:(1)4, node:(4)2, nvlink}
///
/// Shapes of fewer pieces are left out: a finer one contains all their strategies.
std::vector<std::vector<AxisRef>> mesh_shapes(const DeviceMesh& mesh, std::size_t most = 3);

/// A plan and its planner.
struct ShapedPlan {
  std::unique_ptr<ModelPlanner> planner;
  Plan plan;
};

/// `mesh: auto`: the model is planned at `options.level` in every shape of the cluster's mesh, and the best plan is returned:
/// at level 2 that of the shortest step, else the one that the others do not beat (`is_better`); of equals the first.
/// `Plan::tried_shapes` says what each shape gave, and the bound is that of all of them. A time limit is shared among them.
/// Throws InputError as ModelPlanner does.
ShapedPlan plan_best_shape(const std::shared_ptr<const Model>& model, const Cluster& cluster,
                           const PlanOptions& options, std::stop_token stop = {},
                           const ModelPlanner::Progress& progress = {});

}  // namespace shardplan
