// Strategies combine the pieces of a mesh freely, but only complete pieces, of which there are three: with more, an
// operator would have too many candidates. If the axes have more prime factors than that, their grouping limits what
// can be expressed (12 heads on node=8, nvlink=8 need a piece of 4 or two of 2, experts one of 8), and no grouping is
// always best. So each is planned; there are at most a few dozen.
#include "planner/mesh_search.h"

#include <algorithm>
#include <utility>

#include "costmodel/cluster/cluster_mesh.h"
#include "planner/worker_groups.h"
#include "solver/limits.h"

namespace shardplan {
namespace {

std::size_t num_prime_factors(std::int64_t size) {
  std::size_t count = 0;
  for (std::int64_t factor = 2; size > 1; ++factor) {
    if (factor * factor > size) factor = size;
    for (; size % factor == 0; size /= factor) ++count;
  }
  return count;
}

/// All shapes that begin with `pieces`: `rest` is the unsplit rest of an axis, and `count` pieces are used in all.
void add_shapes(const DeviceMesh& mesh, AxisRef rest, std::size_t count, std::vector<AxisRef>& pieces,
                std::vector<std::vector<AxisRef>>& shapes) {
  std::size_t wanted_behind = 0;  // axes of which each takes one piece or more
  std::size_t most_behind = 0;
  for (std::size_t axis = rest.axis + 1; axis < mesh.axes().size(); ++axis) {
    wanted_behind += mesh.axes()[axis].size > 1 ? 1 : 0;
    most_behind += num_prime_factors(mesh.axes()[axis].size);
  }
  if (rest.size == 1) {
    if (rest.axis + 1 < mesh.axes().size()) {
      add_shapes(mesh, mesh.whole(rest.axis + 1), count, pieces, shapes);
    } else if (count == 0) {
      shapes.push_back(pieces);
    }
    return;
  }
  for (std::int64_t size = 2; size <= rest.size; ++size) {
    if (rest.size % size != 0) continue;
    const AxisRef minor{rest.axis, rest.before * size, rest.size / size};
    const std::size_t least = wanted_behind + (minor.size > 1 ? 1 : 0);
    if (count < 1 + least || count - 1 > num_prime_factors(minor.size) + most_behind) continue;
    pieces.push_back({rest.axis, rest.before, size});
    add_shapes(mesh, minor, count - 1, pieces, shapes);
    pieces.pop_back();
  }
}

}  // namespace

std::vector<std::vector<AxisRef>> mesh_shapes(const DeviceMesh& mesh, std::size_t most) {
  const std::vector<AxisRef> usual = search_pieces(mesh, most);
  std::vector<std::vector<AxisRef>> shapes;
  std::vector<AxisRef> pieces;
  if (!mesh.axes().empty()) add_shapes(mesh, mesh.whole(0), usual.size(), pieces, shapes);
  if (shapes.empty()) return {usual};
  std::stable_partition(shapes.begin(), shapes.end(), [&](const auto& shape) { return shape == usual; });
  return shapes;
}

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
