#include "planner/auto_search.h"

#include <algorithm>
#include <cmath>

#include "planner/core_search.h"
#include "planner/dual_bound.h"
#include "planner/presolve.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kWorkWithoutMemory = 5'000'000'000;

/// One search: what is known of the answer so far, and the stages that improve on it.
class Run {
 public:
  Run(const StrategyProblem& problem, const SearchOptions& options, const AutoSearchOptions& parts)
      : problem_(problem), options_(options), parts_(parts), deadline_(options.limits.seconds, options.limits.stop) {}

  PlanResult run() {
    check_problem(problem_);
    if (options_.start) offer(*options_.start, "start");
    const Presolve presolve(problem_, options_.objective, known_cost(), parts_.presolve);
    result_.statistics.push_back(presolve.statistics());
    report(&presolve.statistics());
    if (presolve.is_infeasible()) {
      if (presolve.is_never_certain()) result_.status = PlanStatus::kInfeasible;
      return result_;
    }
    if (parts_.presolve && parts_.has_bound && seems_slack(presolve.core())) search_without_memory();
    if (!is_good_enough()) search_core_of(presolve, options_.limits.work);
    if (result_.choice) {
      result_.lower_bound = std::min(result_.lower_bound, result_.cost);
      if (result_.lower_bound == result_.cost) result_.status = PlanStatus::kOptimal;
    }
    return result_;
  }

 private:
  std::optional<std::int64_t> known_cost() const { return result_.choice ? std::optional(result_.cost) : std::nullopt; }
  bool is_good_enough() const {
    if (!result_.choice) return false;
    const double gap = options_.limits.gap * static_cast<double>(result_.lower_bound);
    return static_cast<double>(result_.cost - result_.lower_bound) <= gap;
  }

  void offer(const Choice& choice, const std::string& stage) {
    const Evaluation evaluation = evaluate(problem_, choice);
    const std::int64_t cost = evaluation.value(options_.objective);
    if (!evaluation.feasible || (result_.choice && cost >= result_.cost)) return;
    result_.choice = choice;
    result_.cost = cost;
    result_.status = PlanStatus::kFeasible;
    result_.found_by = stage;
    result_.seconds_to_best = deadline_.elapsed();
  }
  void report(const StageStatistics* stage = nullptr) const {
    if (options_.limits.progress) options_.limits.progress({known_cost(), result_.lower_bound, stage});
  }

  /// Whether a cheap choice made without regard to memory fits: then memory probably does not bind.
  static bool seems_slack(const CoreProblem& core) {
    if (core.limits.empty() || core.num_nodes() == 0) return false;
    DualBound dual(core);
    for (int pass = 0; pass < 3; ++pass) dual.pass();
    return evaluate(core, dual.decoded()).excess == 0;
  }

  /// Without memory a problem reduces much further, and its optimum, if it fits, is the optimum.
  void search_without_memory() {
    Presolve presolve(problem_, options_.objective, known_cost(), true, Presolve::Memory::kIgnored);
    if (presolve.is_infeasible()) return;
    StageStatistics statistics = presolve.statistics();
    statistics.stage += " without memory";
    result_.statistics.push_back(std::move(statistics));
    search_core_of(presolve, options_.limits.work > 0 ? options_.limits.work / 2 : kWorkWithoutMemory);
  }

  void search_core_of(const Presolve& presolve, std::uint64_t work) {
    const CoreProblem& core = presolve.core();
    // A bound on a whole number is rounded up.
    const auto raise_bound = [&](double bound) {
      std::int64_t whole = presolve.base();
      if (!presolve.is_exact()) bound *= 1 - 0x1p-40;
      if (bound > 0) whole += static_cast<std::int64_t>(std::ceil(std::min(bound, core.never)));
      result_.lower_bound = std::max(result_.lower_bound, whole);
    };
    if (core.num_nodes() == 0) {
      // With sums beyond 64 bits or the like, what is left need not be feasible.
      offer(presolve.expand({}), "presolve");
      raise_bound(0);
      report();
      return;
    }
    CoreSearchOptions core_options;
    core_options.threads = std::max(options_.threads, 1);
    core_options.seed = options_.seed;
    core_options.work = work;
    core_options.is_exact = parts_.is_exact;
    core_options.has_bound = parts_.has_bound;
    core_options.good_enough = options_.limits.gap * static_cast<double>(std::max<std::int64_t>(presolve.base(), 0));
    if (result_.choice) {
      core_options.start = presolve.project(*result_.choice);
    } else if (options_.start) {
      core_options.start = presolve.project(*options_.start);
    }
    core_options.progress = [&](const CoreChoice* choice, double, double bound) {
      if (choice != nullptr) offer(presolve.expand(*choice), "search");
      raise_bound(bound);
      report();
    };
    CoreSearchResult found = search_core(core, core_options, deadline_);
    if (found.choice) offer(presolve.expand(*found.choice), found.found_by);
    if (result_.found_by == "search") result_.found_by = found.found_by;
    raise_bound(found.bound);
    for (StageStatistics& stage : found.statistics) result_.statistics.push_back(std::move(stage));
    if (!result_.choice && found.is_complete && !found.choice && presolve.is_never_certain()) {
      result_.status = PlanStatus::kInfeasible;
    }
  }

  const StrategyProblem& problem_;
  const SearchOptions& options_;
  const AutoSearchOptions& parts_;
  const Deadline deadline_;
  PlanResult result_;
};

class AutoSearch : public Search {
 public:
  explicit AutoSearch(const AutoSearchOptions& parts) : parts_(parts) {}
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    return Run(problem, options, parts_).run();
  }

 private:
  AutoSearchOptions parts_;
};

}  // namespace

std::unique_ptr<Search> make_auto_search(const AutoSearchOptions& options) {
  return std::make_unique<AutoSearch>(options);
}

}  // namespace shardplan
