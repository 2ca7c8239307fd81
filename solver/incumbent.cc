#include "solver/incumbent.h"

#include <algorithm>

namespace shardplan {

Incumbent::Incumbent(const StrategyProblem& problem, const SearchOptions& options, const Deadline& deadline)
    : problem_(problem), options_(options), deadline_(deadline) {
  check_problem(problem);
}

bool Incumbent::offer(const Choice& choice, std::string_view stage) {
  const Evaluation evaluation = evaluate(problem_, choice);
  const std::int64_t cost = evaluation.value(options_.objective);
  if (!evaluation.feasible || (has_choice() && cost >= result_.cost)) return false;
  result_.choice = choice;
  result_.cost = cost;
  result_.found_by = stage;
  result_.seconds_to_best = deadline_.elapsed();
  return true;
}

void Incumbent::raise_bound(std::int64_t bound) {
  result_.lower_bound = std::max(result_.lower_bound, std::min(bound, kForbidden));
}

void Incumbent::rename_stage(std::string_view from, std::string_view to) {
  if (result_.found_by == from) result_.found_by = to;
}

void Incumbent::report(const StageStatistics* stage) const {
  if (options_.limits.progress) options_.limits.progress({cost(), result_.lower_bound, stage});
}

bool Incumbent::is_within_gap() const {
  if (!has_choice()) return false;
  const double gap = options_.limits.gap * static_cast<double>(result_.lower_bound);
  return static_cast<double>(result_.cost - result_.lower_bound) <= gap;
}

PlanResult Incumbent::result(std::optional<Limit> limit) const {
  PlanResult result = result_;
  if (result.choice) {
    // A bound above the cost of a feasible choice can only come from rounding; the cost is then the better bound.
    result.lower_bound = std::min(result.lower_bound, result.cost);
    result.status = result.lower_bound == result.cost ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  } else if (is_infeasible_) {
    result.status = PlanStatus::kInfeasible;
  }
  const bool is_proven = result.status == PlanStatus::kOptimal || result.status == PlanStatus::kInfeasible;
  result.stopped_by = is_proven ? std::nullopt : limit;
  if (result.status != PlanStatus::kNoPlanFound || limit) result.obstacle.clear();
  return result;
}

}  // namespace shardplan
