// Strategies combine the pieces of a mesh freely, but only complete pieces, of which there are three: with more, an
// operator would have too many candidates. If the axes have more prime factors than that, their grouping limits what
// can be expressed (12 heads on node=8, nvlink=8 need a piece of 4 or two of 2, experts one of 8), and no grouping is
// always best. So each is planned; there are at most a few dozen.
#include "planner/mesh_search.h"

#include <algorithm>
#include <utility>

#include "costmodel/cluster/cluster_mesh.h"
#include "planner/mesh_shapes.h"
#include "planner/worker_groups.h"
#include "solver/limits.h"

namespace shardplan {
ShapedPlan plan_best_shape(const std::shared_ptr<const Model>& model, const Cluster& cluster,
                           const PlanOptions& options, std::stop_token stop, const ModelPlanner::Progress& progress) {
  const Deadline since_begin(0, {});
  const std::vector<std::vector<AxisRef>> shapes = mesh_shapes(make_mesh(worker_groups(*model, cluster).group));
  ShapedPlan best;
  std::vector<TriedShape> tried;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (stop.stop_requested() && i > 0) break;
    PlanOptions of_shape = options;
    of_shape.pieces = shapes[i];
    if (options.time_limit > 0) {
      of_shape.time_spent = options.time_spent + since_begin.elapsed();
      const double left = std::max(0.0, options.time_limit - of_shape.time_spent);
      of_shape.time_limit = of_shape.time_spent + left / static_cast<double>(shapes.size() - i);
    }
    auto planner = std::make_unique<ModelPlanner>(model, cluster, of_shape);
    Plan plan = planner->plan(options.level, options.search, stop, progress);
    plan.options.time_limit = options.time_limit;
    tried.push_back({shapes[i], plan.status, plan.time, plan.memory.peak, plan.bound, plan.overlapped_bound,
                     plan.free_bound, plan.is_bound_one_block_ahead});
    bool replaces = best.planner == nullptr;
    if (!replaces && is_found(plan.status)) {
      const bool is_shorter = plan.time.step() < best.plan.time.step();
      replaces =
          !is_found(best.plan.status) || (options.level == Level::kSpeed ? is_shorter : is_better(plan, best.plan));
    }
    if (replaces) best = {std::move(planner), std::move(plan)};
  }
  // A shape in which nothing fits has no plan that a bound could be about.
  for (const TriedShape& shape : tried) {
    if (shape.status == PlanStatus::kInfeasible) continue;
    best.plan.bound.amount = std::min(best.plan.bound.amount, shape.bound.amount);
    if (!shape.overlapped_bound) best.plan.overlapped_bound.reset();
    if (best.plan.overlapped_bound) {
      best.plan.overlapped_bound = std::min(*best.plan.overlapped_bound, *shape.overlapped_bound);
      best.plan.is_bound_one_block_ahead |= shape.is_bound_one_block_ahead;
    }
    if (!shape.free_bound) best.plan.free_bound.reset();
    if (best.plan.free_bound) {
      best.plan.free_bound->amount = std::min(best.plan.free_bound->amount, shape.free_bound->amount);
    }
  }
  const bool is_at_bound = best.plan.cost.amount <= best.plan.bound.amount;
  if (best.plan.status == PlanStatus::kOptimal && !is_at_bound) best.plan.status = PlanStatus::kFeasible;
  best.plan.tried_shapes = std::move(tried);
  return best;
}

}  // namespace shardplan
