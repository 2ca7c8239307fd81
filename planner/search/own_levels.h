#pragma once

#include <functional>

#include "planner/plan.h"
#include "planner/problem/model_problem.h"
#include "planner/search/level_search.h"
#include "program/lower.h"

namespace shardplan {

/// What one of the searches within a plan is made of.
struct OwnLevelSearch {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const CostModel& costs;
  RedistributionPlanner& redistributions;
  std::function<Restrictions(Level)> restrictions;
  std::function<LevelOptions(Level)> options;
  /// The plan that decisions make, like another one in all that was asked.
  std::function<Plan(const Decisions&, const Plan&)> decided;
};

/// A plan in which every block or operator with a `level` of its own is searched again at that level, the outer blocks
/// before the inner ones. Everything outside stays as the plan has it: the strategies of other operators, the layouts
/// of tensors that only they touch, and so what crosses the block's border. A block comprises its operators, their
/// backward operators, and the updates of parameters that nobody else reads. Memory is that of the block alone: at
/// level 1 it holds the least that it can, wherever the peak of the step is. A block whose answer would not fit keeps
/// the plan's.
Plan with_own_levels(Plan plan, const OwnLevelSearch& search);

}  // namespace shardplan
