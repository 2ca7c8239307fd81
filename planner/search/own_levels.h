#pragma once

#include <functional>

#include "planner/plan.h"
#include "planner/problem/model_problem.h"
#include "planner/search/level_search.h"
#include "program/lower.h"

namespace shardplan {

/// Input of the searches of blocks with a level of their own.
struct OwnLevelSearch {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const CostModel& costs;
  RedistributionPlanner& redistributions;
  std::function<Restrictions(Level)> restrictions;
  std::function<LevelOptions(Level)> options;
  /// The plan that decisions make, with the options of another plan.
  std::function<Plan(const Decisions&, const Plan&)> decided;
};

/// A plan in which every block or operator with its own `level` is searched again at that level, outer blocks before
/// inner ones. Everything outside stays as in `plan`: the strategies of other operators, the layouts of tensors that
/// only they touch, and therefore the layouts at the block's border. A block comprises its operators, their backward
/// operators, and the updates of parameters that no other operator reads. Memory means that of the block alone: level
/// 1 minimises it wherever the peak of the step is. A block whose result would not fit keeps the strategies of
/// `plan`.
Plan with_own_levels(Plan plan, const OwnLevelSearch& search);

}  // namespace shardplan
