#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/overlap/ordered_plan.h"
#include "planner/plan.h"
#include "planner/problem/global_degrees.h"
#include "planner/problem/model_problem.h"
#include "planner/search/level_search.h"
#include "program/lower.h"

namespace shardplan {

/// Larger graphs keep the plan of the additive search: the concurrency relation takes memory quadratic in the
/// operators.
constexpr std::size_t kMostOverlappedOperators = 20'000;

/// Input of the search for the shortest overlapped step.
struct OverlapSearch {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const CostModel& costs;
  RedistributionOptions redistribution_options;
  std::shared_ptr<const RepeatClasses> uniform;  // see Restrictions
  bool wants_free_bound = false;     // with `uniform`: also bound plans whose layers differ (`Plan::free_bound`)
  bool is_measured = false;          // times of collectives come from measured tables
  LevelOptions options;              // of each search; its work limit is reduced
  std::uint64_t work_limit = 0;      // the user's, for all that is scheduled as well; 0: none
  std::vector<Decisions> known;      // plans that could be shorter: data parallelism
  std::vector<GlobalDegrees> kinds;  // the best plan of each is tried if it could be shorter
  /// The overlapped plan that decisions make.
  std::function<Plan(const Decisions&, const OrderEffort&)> scheduled = {};
  /// An estimate of the step of these decisions, in an order made by the rule that made the plan's, refined or not.
  /// May be called by several threads at once.
  std::function<std::optional<Picoseconds>(const Decisions&, const Plan&, bool is_refined)> step_by_rule = {};
};

/// Returns `plan` or one with a shorter step, and a lower bound on the overlapped step (`Plan::overlapped_bound`): it
/// holds for all choices of the candidates that fit in the order of the graph, all instruction orders (or those that
/// `Plan::is_bound_one_block_ahead` names) and all buckets. `plan` is overlapped, of level kSpeed; `free` is its
/// problem, with layers not tied.
///
/// A weighted sum of instruction times (planner/overlap/step_bound.h) is at most the step; the bound is the minimum
/// of such a sum over all choices. Weights that are best for one choice let other choices hide what they do not
/// count. So weights and choices are improved in turn: the first weights are those of the plan; each round adds the
/// best weights for every choice found, and searches with the mixture of weights that is best against all choices so
/// far. Each choice found is a candidate plan, which is scheduled and timed. Further candidates are, after the first
/// round, minima of sums in which communication counts by an estimate of what is hidden, and, after the last one,
/// choices of `kinds`, if they could be shorter.
///
/// If the plan is then far from the bound, the times are refined and a finer bound is computed
/// (planner/overlap/step_proof.h), whose choices are candidates too. So are choices that would be the shortest if all
/// were hidden that the windows of known plans could hide (planner/overlap/hiding_windows.h). If the gap is still
/// large, a local search continues from the plan and from others (planner/overlap/near_descent.h), with near choices and
/// with parts of other choices found so far, as long as it finds shorter steps, and parts of good plans are searched
/// again (planner/overlap/part_descent.h). Finally, if the plan holds more than half of the memory, a choice that holds at
/// least 10 % less and takes at most 0.5 % longer replaces it. The order of the best plan is then refined once more.
Plan overlap_searched(Plan plan, ModelProblem free, const OverlapSearch& search);

}  // namespace shardplan
