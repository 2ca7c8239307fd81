#include "solver/searches/auto_search.h"

#include <algorithm>
#include <cmath>

#include "solver/bounds/dual_bound.h"
#include "solver/incumbent.h"
#include "solver/presolve/presolve.h"
#include "solver/searches/portfolio_search.h"
#include "solver/searches/unlimited_search.h"
#include "solver/time_profile.h"

// Two relaxations of one problem. Without its memory limits a problem reduces much further, often to nothing: trees are
// folded, chains become edges, and elimination decides the rest. Its optimum is a bound for the whole problem, and the
// answer if it fits. So where memory may not bind, the problem is first searched without it; if the result nearly fits,
// the search with memory starts from it; if it is far from fitting, only three passes of a bound are lost.
//
// With memory, only reductions that keep the bytes exact apply, and the portfolio prices the limits. The problem, its
// choices and its bound take three forms (docs/search.md): StrategyProblem, ReductionGraph, CoreProblem. The
// `Incumbent` evaluates every choice on the original problem, so no stage's own claim of a cost is trusted.

namespace shardplan {
namespace {

constexpr std::uint64_t kWorkWithoutMemory = 5'000'000'000;
constexpr int kPassesToDecode = 3;

/// Whether no choice can exceed a limit.
bool always_fits(const StrategyProblem& problem) {
  TimeProfile most(problem.memory_limits.size());
  for (const ProblemNode& node : problem.nodes) {
    for (const MemoryUse& use : node.memory) {
      if (use.begin >= use.end) continue;
      const std::vector<Bytes>& bytes = problem.usage_tables[use.usage].bytes;
      most.add(use.begin, use.end, *std::max_element(bytes.begin(), bytes.end()));
    }
  }
  const std::vector<Int128> sums = most.sums();
  for (std::size_t time = 0; time < sums.size(); ++time) {
    if (sums[time] > problem.memory_limits[time]) return false;
  }
  return true;
}

/// The strategy of least own cost for every node.
Choice cheapest_strategies(const StrategyProblem& problem, const Objective& objective) {
  IdVector<StrategyTableId, StrategyId> cheapest;
  for (const StrategyTable& table : problem.strategy_tables) {
    const auto value = [&](const Cost& cost) {
      Evaluation item;
      item.cost = cost;
      return item.value(objective);
    };
    const auto least = std::min_element(table.costs.begin(), table.costs.end(),
                                        [&](const Cost& a, const Cost& b) { return value(a) < value(b); });
    cheapest.push_back(StrategyId(static_cast<std::size_t>(least - table.costs.begin())));
  }
  Choice choice;
  for (const ProblemNode& node : problem.nodes) choice.strategy.push_back(cheapest[node.strategies]);
  return choice;
}

/// One search: the best answer so far, and the stages that improve it.
class Run {
 public:
  Run(const StrategyProblem& problem, const SearchOptions& options, const AutoSearchOptions& parts)
      : problem_(problem),
        options_(options),
        parts_(parts),
        deadline_(options.limits.seconds, options.limits.stop),
        incumbent_(problem, options, deadline_) {}

  PlanResult run() {
    if (options_.start) incumbent_.offer(*options_.start, "start");
    if (parts_.presolve && parts_.has_bound) search_without_memory();
    if (!is_over_ && !incumbent_.is_within_gap()) search_with_memory();
    if (!stopped_by_ && incumbent_.is_within_gap()) stopped_by_ = Limit::kGap;
    return incumbent_.result(stopped_by_);
  }

 private:
  bool fits(const Choice& choice) const { return evaluate(problem_, choice).worst_excess <= 0; }
  enum class Fit { kSlack, kNear, kFar };
  /// Whether a good choice that ignores memory fits: then memory probably does not bind. Near: it needs at most twice
  /// the available memory.
  Fit fit_without_memory(const Presolve& presolve) const {
    const CoreProblem& core = presolve.core();
    DualBound dual(core);
    for (int pass = 0; pass < kPassesToDecode; ++pass) dual.pass();
    const Evaluation evaluation =
        evaluate(problem_, presolve.expand(core.num_nodes() == 0 ? CoreChoice{} : dual.decoded()));
    if (evaluation.worst_excess <= 0) return Fit::kSlack;
    const Bytes least = *std::min_element(problem_.memory_limits.begin(), problem_.memory_limits.end());
    return evaluation.worst_excess <= least ? Fit::kNear : Fit::kFar;
  }

  /// Whether the known choice or the cheapest strategy of every node fits.
  bool may_be_slack() const {
    return (options_.start && fits(*options_.start)) || fits(cheapest_strategies(problem_, options_.objective));
  }

  void search_without_memory() {
    is_over_ = always_fits(problem_);
    if (!is_over_ && (options_.memory_binds || !may_be_slack())) return;
    const Presolve presolve(problem_, options_.objective, deadline_, incumbent_.cost(), true,
                            Presolve::Memory::kIgnored);
    const Fit fit = is_over_ ? Fit::kSlack : presolve.is_infeasible() ? Fit::kFar : fit_without_memory(presolve);
    if (fit == Fit::kFar) return;
    fit_ = fit;
    StageStatistics statistics = presolve.statistics();
    if (!is_over_) statistics.stage += " without memory";
    const std::uint64_t work = is_over_                    ? options_.limits.work
                               : options_.limits.work == 0 ? kWorkWithoutMemory
                               : fit == Fit::kSlack        ? quarters(3)
                                                           : quarters(1);
    // Leaves time to start again with memory, in case the result does not fit.
    search(presolve, std::move(statistics), work, is_over_ ? deadline_ : deadline_.part(0.75));
    // As far as is known, memory does not bind, and this core is the smaller of the two: where work is limited, the
    // result found here stands.
    if (work > 0 && fit == Fit::kSlack && unlimited_ && fits(*unlimited_)) is_over_ = true;
  }
  void search_with_memory() {
    const Presolve presolve(problem_, options_.objective, deadline_, incumbent_.cost(), parts_.presolve);
    // A search without memory that found a plan did most of the work; a quarter is left for the rest.
    const std::uint64_t work = options_.limits.work;
    const bool is_rest = fit_ == Fit::kSlack && incumbent_.has_choice();
    const std::uint64_t share = is_rest ? quarters(1) : fit_ == Fit::kNear ? quarters(3) : work;
    search(presolve, presolve.statistics(), share, deadline_);
  }
  /// A part of the work; never 0 where work is limited, since 0 means no limit.
  std::uint64_t quarters(std::uint64_t count) const {
    const std::uint64_t work = options_.limits.work;
    return work == 0 ? 0 : std::max<std::uint64_t>(work / 4 * count, 1);
  }
  /// Work that suffices for the requested passes. At constant prices, where passes use over-relaxation, half of them
  /// get as far.
  std::uint64_t enough(std::uint64_t work, const Presolve& presolve) const {
    if (options_.limits.work == 0 || options_.limits.passes == 0 || presolve.is_infeasible()) return work;
    const CoreProblem& core = presolve.core();
    const std::uint64_t passes = core.limits.empty() ? (options_.limits.passes + 1) / 2 : options_.limits.passes;
    return std::max(work, passes * 2 * core.sweep_work);
  }

  void search(const Presolve& presolve, StageStatistics statistics, std::uint64_t work, const Deadline& deadline) {
    incumbent_.report(&statistics);
    incumbent_.add(std::move(statistics));
    if (!presolve.is_infeasible()) {
      search_core(presolve, work, deadline);
    } else if (presolve.is_infeasibility_certain()) {
      incumbent_.set_infeasible();
    } else {
      stopped_by_ = deadline.reached();
      incumbent_.set_obstacle(
          "costs of 2^58 or more, also as sums, are forbidden, and every other choice was excluded");
    }
  }

  /// A bound on an integer is rounded up.
  void raise_bound(const Presolve& presolve, double bound) {
    std::int64_t whole = presolve.constant_cost();
    if (!presolve.is_exact()) bound *= 1 - 0x1p-40;
    if (bound > 0) whole += static_cast<std::int64_t>(std::ceil(std::min(bound, presolve.core().big_m)));
    incumbent_.raise_bound(whole);
  }

  CoreSearchOptions core_options(const Presolve& presolve, std::uint64_t work) const {
    CoreSearchOptions result;
    result.threads = std::max(options_.threads, 1);
    result.seed = options_.seed;
    result.work = work;
    result.is_exact = parts_.is_exact;
    result.has_bound = parts_.has_bound;
    result.constant_cost = static_cast<double>(presolve.constant_cost());
    if (incumbent_.has_choice()) {
      result.known_cost = static_cast<double>(*incumbent_.cost() - presolve.constant_cost());
    }
    result.good_enough.push_back({0, options_.limits.gap});
    if (work > 0) {
      if (options_.limits.early_gap > 0) {
        result.good_enough.push_back({options_.limits.early_work, options_.limits.early_gap});
      }
      result.good_enough.push_back({work, options_.limits.loose_gap});
      result.work = enough(work, presolve);
      result.exact_work = options_.limits.exact_work;
      result.give_up = {options_.limits.give_up_work, options_.limits.give_up_gap};
    }
    if (unlimited_) result.starts.push_back(presolve.project(*unlimited_));
    if (incumbent_.has_choice()) {
      result.starts.push_back(presolve.project(*incumbent_.choice()));
    } else if (options_.start) {
      result.starts.push_back(presolve.project(*options_.start));
    }
    return result;
  }

  void search_core(const Presolve& presolve, std::uint64_t work, const Deadline& deadline) {
    const CoreProblem& core = presolve.core();
    if (core.num_nodes() == 0) {
      // If sums exceed 64 bits, for example, what remains need not be feasible.
      incumbent_.offer(presolve.expand({}), "presolve");
      raise_bound(presolve, 0);
      incumbent_.report();
      return;
    }
    CoreSearchOptions options = core_options(presolve, work);
    options.progress = [&](const CoreChoice* choice, double, double bound) {
      if (choice != nullptr) incumbent_.offer(presolve.expand(*choice), "search");
      raise_bound(presolve, bound);
      incumbent_.report();
    };
    const bool is_unlimited = core.limits.empty() && parts_.is_exact && parts_.has_bound;
    CoreSearchResult found =
        is_unlimited ? search_without_limits(core, options, deadline) : search_with_portfolio(core, options, deadline);
    if (found.choice) {
      const Choice choice = presolve.expand(*found.choice);
      incumbent_.offer(choice, found.found_by);
      if (core.limits.empty()) unlimited_ = choice;
    }
    incumbent_.rename_stage("search", found.found_by);
    raise_bound(presolve, found.bound);
    for (StageStatistics& stage : found.statistics) incumbent_.add(std::move(stage));
    if (!incumbent_.has_choice() && found.is_complete && !found.choice && presolve.is_infeasibility_certain()) {
      incumbent_.set_infeasible();
    }
    stopped_by_ = found.stopped_by;
  }

  const StrategyProblem& problem_;
  const SearchOptions& options_;
  const AutoSearchOptions& parts_;
  const Deadline deadline_;
  Incumbent incumbent_;
  bool is_over_ = false;             // the search without memory covered the whole problem
  std::optional<Fit> fit_;           // of the result of the search without memory
  std::optional<Choice> unlimited_;  // that result
  std::optional<Limit> stopped_by_;  // of the last stage
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
