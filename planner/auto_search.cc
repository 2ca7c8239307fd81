#include "planner/auto_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "planner/core_search.h"
#include "planner/presolve.h"

namespace shardplan {
namespace {

class AutoSearch : public Search {
 public:
  explicit AutoSearch(const AutoSearchOptions& parts) : parts_(parts) {}

  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    check_problem(problem);
    PlanResult result;
    const auto offer = [&](const Choice& choice, const std::string& stage) {
      const Evaluation evaluation = evaluate(problem, choice);
      const std::int64_t cost = evaluation.value(options.objective);
      if (!evaluation.feasible || (result.choice && cost >= result.cost)) return;
      result.choice = choice;
      result.cost = cost;
      result.status = PlanStatus::kFeasible;
      result.found_by = stage;
      result.seconds_to_best = deadline.elapsed();
    };
    const auto report = [&](const StageStatistics* stage = nullptr) {
      if (!options.limits.progress) return;
      options.limits.progress({result.choice ? std::optional(result.cost) : std::nullopt, result.lower_bound, stage});
    };
    if (options.start) offer(*options.start, "start");
    const Presolve presolve(problem, options.objective, result.choice ? std::optional(result.cost) : std::nullopt,
                            parts_.presolve);
    result.statistics.push_back(presolve.statistics());
    report(&presolve.statistics());
    if (presolve.is_infeasible()) {
      if (presolve.is_never_certain()) result.status = PlanStatus::kInfeasible;
      return result;
    }
    const CoreProblem& core = presolve.core();
    if (core.num_nodes() == 0) {
      offer(presolve.expand({}), "presolve");
      // Sums beyond 64 bits or the like: what is left of such a problem need not be feasible.
      if (!result.choice) return result;
      result.status = PlanStatus::kOptimal;
      result.lower_bound = result.cost;
      report();
      return result;
    }
    // A bound on a whole number is rounded up.
    const auto whole_bound = [&](double bound) {
      if (!(bound > 0)) return presolve.base();
      if (!presolve.is_exact()) bound *= 1 - 0x1p-40;
      return presolve.base() + static_cast<std::int64_t>(std::ceil(std::min(bound, core.never)));
    };
    CoreSearchOptions core_options;
    core_options.threads = std::max(options.threads, 1);
    core_options.seed = options.seed;
    core_options.work = options.limits.work;
    core_options.good_enough = options.limits.gap * static_cast<double>(std::max<std::int64_t>(presolve.base(), 0));
    core_options.is_exact = parts_.is_exact;
    core_options.has_bound = parts_.has_bound;
    if (options.start) core_options.start = presolve.project(*options.start);
    core_options.progress = [&](const CoreChoice* choice, double, double bound) {
      if (choice != nullptr) offer(presolve.expand(*choice), "search");
      result.lower_bound = std::max(result.lower_bound, whole_bound(bound));
      report();
    };
    CoreSearchResult found = search_core(core, core_options, deadline);
    if (found.choice) {
      offer(presolve.expand(*found.choice), found.found_by);
      if (result.found_by == "search") result.found_by = found.found_by;
    }
    result.lower_bound = std::max(result.lower_bound, whole_bound(found.bound));
    for (StageStatistics& stage : found.statistics) result.statistics.push_back(std::move(stage));
    if (result.choice) {
      result.lower_bound = std::min(result.lower_bound, result.cost);
      if (result.lower_bound == result.cost) result.status = PlanStatus::kOptimal;
    } else if (found.is_complete && !found.choice && presolve.is_never_certain()) {
      result.status = PlanStatus::kInfeasible;
    }
    return result;
  }

 private:
  AutoSearchOptions parts_;
};

}  // namespace

std::unique_ptr<Search> make_auto_search(const AutoSearchOptions& options) {
  return std::make_unique<AutoSearch>(options);
}

}  // namespace shardplan
