#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/plan.h"
#include "planner/problem/global_degrees.h"
#include "planner/problem/model_problem.h"
#include "planner/search/level_search.h"
#include "program/lower.h"

namespace shardplan {

/// Larger graphs are left as they were searched: what may run together takes memory quadratic in the operators.
constexpr std::size_t kMostOverlappedOperators = 20'000;

/// What the search for the shortest overlapped step is made of.
struct OverlapSearch {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const CostModel& costs;
  RedistributionOptions redistribution_options;
  std::shared_ptr<const RepeatClasses> uniform;  // as in Restrictions
  bool wants_free_bound = false;     // with `uniform`: of plans whose layers differ, too (`Plan::free_bound`)
  bool is_measured = false;          // times of collectives come from tables
  LevelOptions options;              // of each search; its work is made less
  std::vector<Decisions> known;      // plans that may be shorter: data parallelism
  std::vector<GlobalDegrees> kinds;  // the best plan of each is tried, if it may be shorter
  /// The plan that decisions make, its collectives beside its kernels. Its order is refined unless it is far slower than the step
  /// to beat.
  std::function<Plan(const Decisions&, std::optional<Picoseconds> step_to_beat)> scheduled;
  /// About what the step of those decisions takes, in an order by the rule of that plan's, itself or refined. May be asked by
  /// several threads at once.
  std::function<std::optional<Picoseconds>(const Decisions&, const Plan&, bool is_refined)> step_by_rule;
};

/// The plan or one whose step is shorter, and a bound on the step in which collectives run beside kernels
/// (`Plan::overlapped_bound`): no choice of the candidates that fits in the order of the graph takes less, in whatever order
/// of its instructions, or of those that `Plan::is_bound_one_block_ahead` names, and with whatever buckets. `plan` is
/// overlapped, of level kSpeed; `free` is its problem, layers not tied.
///
/// A weighted sum (planner/overlap/step_bound.h) is no more than any step; the bound is its least value over all choices.
/// Weights that suit one choice leave others that hide what they do not count. So weights and choices answer each other:
/// those of the plan first, then with every choice that was found the weights that suit it, of all of which the mean is
/// taken that is best against all choices so far. Each choice is a candidate, ordered and timed. So are, after the first
/// round, those of least sums in which communication counts by a guess of what is hidden, and after the last one choices of
/// `kinds`, where they may be shorter.
/// Where the plan is not near the bound then, times are made finer and a bound of them is proven
/// (planner/overlap/step_proof.h), of which choices are candidates, too. Where it is still not, the search goes on from the
/// plan to choices near it (planner/overlap/near_search.h), as long as one is faster.
Plan overlap_searched(Plan plan, ModelProblem free, const OverlapSearch& search);

}  // namespace shardplan
