#include "solver/searches/auto_search.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "solver/bounds/dual_bound.h"
#include "solver/presolve/presolve.h"
#include "solver/searches/portfolio_search.h"

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
    if (parts_.presolve && parts_.has_bound) search_without_memory();
    if (!is_over_ && !is_within_gap()) search_with_memory();
    if (result_.choice) {
      result_.lower_bound = std::min(result_.lower_bound, result_.cost);
      if (result_.lower_bound == result_.cost) result_.status = PlanStatus::kOptimal;
    }
    return result_;
  }

 private:
  std::optional<std::int64_t> known_cost() const { return result_.choice ? std::optional(result_.cost) : std::nullopt; }
  bool is_within_gap() const {
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

  /// Whether no choice could exceed a limit.
  bool is_never_short() const {
    std::vector<Int128> change(problem_.memory_limits.size() + 1, 0);
    for (const ProblemNode& node : problem_.nodes) {
      for (const MemoryUse& use : node.memory) {
        if (use.begin >= use.end) continue;
        const std::vector<Bytes>& bytes = problem_.usage_tables[use.usage].bytes;
        const Bytes most = *std::max_element(bytes.begin(), bytes.end());
        change[use.begin] += most;
        change[use.end] -= most;
      }
    }
    Int128 bytes = 0;
    for (std::size_t time = 0; time < problem_.memory_limits.size(); ++time) {
      bytes += change[time];
      if (bytes > problem_.memory_limits[time]) return false;
    }
    return true;
  }

  bool fits(const Choice& choice) const { return evaluate(problem_, choice).worst_excess <= 0; }
  /// Whether the known choice or the cheapest strategy of every node fits.
  bool may_be_slack() const {
    if (options_.start && fits(*options_.start)) return true;
    IdVector<StrategyTableId, StrategyId> cheapest;
    for (const StrategyTable& table : problem_.strategy_tables) {
      const auto value = [&](const Cost& cost) {
        Evaluation item;
        item.cost = cost;
        return item.value(options_.objective);
      };
      const auto least = std::min_element(table.costs.begin(), table.costs.end(),
                                          [&](const Cost& a, const Cost& b) { return value(a) < value(b); });
      cheapest.push_back(StrategyId(static_cast<std::size_t>(least - table.costs.begin())));
    }
    Choice choice;
    for (const ProblemNode& node : problem_.nodes) choice.strategy.push_back(cheapest[node.strategies]);
    return fits(choice);
  }
  enum class Fit { kSlack, kNear, kFar };
  /// Whether a good choice made without regard to memory fits: then memory probably does not bind. Near: it takes at
  /// most twice what there is.
  Fit fit_without_memory(const Presolve& presolve) const {
    const CoreProblem& core = presolve.core();
    DualBound dual(core);
    for (int pass = 0; pass < 3; ++pass) dual.pass();
    const Evaluation evaluation =
        evaluate(problem_, presolve.expand(core.num_nodes() == 0 ? CoreChoice{} : dual.decoded()));
    if (evaluation.worst_excess <= 0) return Fit::kSlack;
    const Bytes least = *std::min_element(problem_.memory_limits.begin(), problem_.memory_limits.end());
    return evaluation.worst_excess <= least ? Fit::kNear : Fit::kFar;
  }

  /// Without memory a problem reduces much further, and its optimum, if it fits, is the optimum. If it nearly fits it
  /// is a bound, and a start.
  void search_without_memory() {
    is_over_ = is_never_short();
    if (!is_over_ && !may_be_slack()) return;
    const Presolve presolve(problem_, options_.objective, deadline_, known_cost(), true, Presolve::Memory::kIgnored);
    const Fit fit = is_over_ ? Fit::kSlack : presolve.is_infeasible() ? Fit::kFar : fit_without_memory(presolve);
    if (fit == Fit::kFar) return;
    fit_ = fit;
    StageStatistics statistics = presolve.statistics();
    if (!is_over_) statistics.stage += " without memory";
    const std::uint64_t work = is_over_                    ? options_.limits.work
                               : options_.limits.work == 0 ? kWorkWithoutMemory
                               : fit == Fit::kSlack        ? options_.limits.work / 4 * 3
                                                           : options_.limits.work / 4;
    // Time to begin anew with memory, should what is found here not fit.
    search(presolve, std::move(statistics), work, is_over_ ? deadline_ : deadline_.part(0.75));
  }
  void search_with_memory() {
    const Presolve presolve(problem_, options_.objective, deadline_, known_cost(), parts_.presolve);
    // A search without memory that found a plan went most of the way and has left a quarter of the work.
    const std::uint64_t work = options_.limits.work;
    const bool is_rest = fit_ == Fit::kSlack && result_.choice;
    search(presolve, presolve.statistics(), is_rest ? work / 4 : fit_ == Fit::kNear ? work / 4 * 3 : work, deadline_);
  }

  void search(const Presolve& presolve, StageStatistics statistics, std::uint64_t work, const Deadline& deadline) {
    report(&statistics);
    result_.statistics.push_back(std::move(statistics));
    if (!presolve.is_infeasible()) {
      search_core_of(presolve, work, deadline);
    } else if (presolve.is_infeasibility_certain()) {
      result_.status = PlanStatus::kInfeasible;
    }
  }

  void search_core_of(const Presolve& presolve, std::uint64_t work, const Deadline& deadline) {
    const CoreProblem& core = presolve.core();
    // A bound on a whole number is rounded up.
    const auto raise_bound = [&](double bound) {
      std::int64_t whole = presolve.constant_cost();
      if (!presolve.is_exact()) bound *= 1 - 0x1p-40;
      if (bound > 0) whole += static_cast<std::int64_t>(std::ceil(std::min(bound, core.big_m)));
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
    core_options.gap_tolerance =
        options_.limits.gap * static_cast<double>(std::max<std::int64_t>(presolve.constant_cost(), 0));
    if (unlimited_) core_options.starts.push_back(presolve.project(*unlimited_));
    if (result_.choice) {
      core_options.starts.push_back(presolve.project(*result_.choice));
    } else if (options_.start) {
      core_options.starts.push_back(presolve.project(*options_.start));
    }
    core_options.progress = [&](const CoreChoice* choice, double, double bound) {
      if (choice != nullptr) offer(presolve.expand(*choice), "search");
      raise_bound(bound);
      report();
    };
    CoreSearchResult found = search_core(core, core_options, deadline);
    if (found.choice) {
      const Choice choice = presolve.expand(*found.choice);
      offer(choice, found.found_by);
      if (core.limits.empty()) unlimited_ = choice;
    }
    if (result_.found_by == "search") result_.found_by = found.found_by;
    raise_bound(found.bound);
    for (StageStatistics& stage : found.statistics) result_.statistics.push_back(std::move(stage));
    if (!result_.choice && found.is_complete && !found.choice && presolve.is_infeasibility_certain()) {
      result_.status = PlanStatus::kInfeasible;
    }
  }

  const StrategyProblem& problem_;
  const SearchOptions& options_;
  const AutoSearchOptions& parts_;
  const Deadline deadline_;
  bool is_over_ = false;             // what was searched without memory was the whole problem
  std::optional<Fit> fit_;           // of what was searched without memory
  std::optional<Choice> unlimited_;  // what that found
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
