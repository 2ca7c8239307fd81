#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "solver/search.h"

namespace shardplan {

/// What a search knows of its answer so far: the best feasible choice, the best bound, and whether a feasible choice
/// can exist. Every search keeps one, so the contract of `PlanResult` is enforced in one place:
///
///   Incumbent incumbent(problem, options, deadline);
///   incumbent.offer(choice, "stage");   // evaluated on the original problem; kept if feasible and cheaper
///   incumbent.raise_bound(bound);       // kept if higher
///   return incumbent.result(limit);     // status, cost, bound and stopping reason are consistent
class Incumbent {
 public:
  /// All three references must outlive it. Throws InputError if the problem breaks an invariant (`check_problem`).
  Incumbent(const StrategyProblem& problem, const SearchOptions& options, const Deadline& deadline);

  /// True if the choice is now the best one: feasible, and cheaper than what was known.
  bool offer(const Choice& choice, std::string_view stage);
  /// Raises the bound, to kForbidden at most: while a problem is reduced, costs and sums of costs above that become
  /// forbidden, so a bound only holds for choices without them. The caller must make sure that the bound holds for all
  /// other choices of the original problem.
  void raise_bound(std::int64_t bound);
  /// Records that no choice is feasible (proven).
  void set_infeasible() { is_infeasible_ = true; }
  /// Records why the search ends by itself without an answer: "the problem is too large for ..."
  void set_obstacle(std::string reason) { result_.obstacle = std::move(reason); }
  void add(StageStatistics statistics) { result_.statistics.push_back(std::move(statistics)); }
  /// Renames the stage that found the best choice, once it is known more exactly.
  void rename_stage(std::string_view from, std::string_view to);
  /// Reports the current state to the caller, if it asked for progress; `stage` as in `SearchProgress`.
  void report(const StageStatistics* stage = nullptr) const;

  bool has_choice() const { return result_.choice.has_value(); }
  const std::optional<Choice>& choice() const { return result_.choice; }
  /// The best choice and its cost, if there is one.
  std::optional<std::int64_t> cost() const { return has_choice() ? std::optional(result_.cost) : std::nullopt; }
  std::int64_t bound() const { return result_.lower_bound; }
  bool is_proven() const { return is_infeasible_ || (has_choice() && result_.lower_bound >= result_.cost); }
  /// Whether the cost is within `SearchLimits::gap` of the bound.
  bool is_within_gap() const;

  /// `limit`: what ended the search, unless it ended by itself; ignored if the answer is proven anyway.
  PlanResult result(std::optional<Limit> limit) const;

 private:
  const StrategyProblem& problem_;
  const SearchOptions& options_;
  const Deadline& deadline_;
  PlanResult result_;  // status and stopped_by are set by `result` alone
  bool is_infeasible_ = false;
};

}  // namespace shardplan
