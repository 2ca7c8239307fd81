#include "solver/searches/portfolio_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "base/random.h"
#include "solver/bounds/branch_and_bound.h"
#include "solver/bounds/dual_bound.h"
#include "solver/bounds/restricted_core.h"
#include "solver/core/move_state.h"
#include "solver/heuristics/block_neighbourhood.h"
#include "solver/heuristics/dive.h"
#include "solver/heuristics/tree_neighbourhood.h"
#include "solver/searches/unlimited_search.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kEpochWork = 40'000'000;            // per thread
constexpr std::uint64_t kExactPassWork = 1'000'000;         // branch and bound takes part up to this work per pass
constexpr std::uint64_t kFirstPasses = 60;                  // of the bound, between exchanges
constexpr std::uint64_t kFreshPasses = 250;                 // of a bound from nothing, in one turn
constexpr std::uint64_t kMovesPerExchange = 4;              // epochs of moves
constexpr double kWorthShrinking = 0.7;                     // of the gap at the last attempt to drop values
constexpr double kShrinks = 0.6;                            // a smaller core is made if at most this share is left
constexpr std::size_t kMostEntries = std::size_t{1} << 23;  // of its matrices
constexpr std::uint64_t kInfiniteWork = std::numeric_limits<std::uint64_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Runs `task(thread)` on all threads and waits. Tasks share nothing that changes.
template <class Task>
void in_parallel(int threads, const Task& task) {
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back([&task, thread] { task(thread); });
  task(0);
}

/// The work of one thread between two exchanges, and what it came to.
enum class Job { kBound, kDive, kTrees, kBlocks, kExact };
const char* const kJobNames[] = {"bound", "dive", "tree neighbourhood", "block neighbourhood", "branch and bound"};

struct Found {
  std::optional<CoreChoice> choice;
  double cost = kInfinity;
  Job by = Job::kBound;
};

class PortfolioSearch {
 public:
  PortfolioSearch(const CoreProblem& core, const CoreSearchOptions& options, const Deadline& deadline)
      : core_(core), options_(options), deadline_(deadline), best_prices_(core.limits.size(), 0) {}

  CoreSearchResult run() {
    workers_.reserve(static_cast<std::size_t>(options_.threads));
    for (int thread = 0; thread < options_.threads; ++thread) workers_.emplace_back(core_, thread);
    if (options_.first_bound) {
      best_prices_ = options_.first_bound->prices;
      bound_ = options_.first_bound->bound;
      for (Worker& worker : workers_) {
        worker.dual.restore(*options_.first_bound, std::vector<std::uint8_t>(core_.costs.size(), 1));
        worker.dual.restart_steps(0.3);
      }
    }
    start();
    // Without memory there is but one path for the bound, and it has been walked.
    if (options_.has_bound && !(options_.first_bound && core_.limits.empty())) bound_first();
    while (!is_done() && !smaller_) {
      epoch();
      if (options_.has_bound && !exact_) shrink();
    }
    return smaller_ ? continue_on_smaller() : finish_result();
  }

 private:
  /// What a thread keeps from epoch to epoch.
  struct Worker {
    Worker(const CoreProblem& core, int number)
        : dual(core),
          state(core, fewest_bytes_choice(core)),
          trees(core, std::vector<double>(core.limits.size(), 0)),
          blocks(core) {
      // No one setting suits all problems: threads differ, and each changes over when its steps have become short.
      steps = kSteps[static_cast<std::size_t>(number) % std::size(kSteps)];
      setting = fresh_setting = static_cast<std::size_t>(number);
    }
    static constexpr DualBound::Steps kSteps[] = {{DualBound::Subgradient::kDecoded, 0.8},
                                                  {DualBound::Subgradient::kDecoded, 0.5},
                                                  {DualBound::Subgradient::kMinMarginals, 0.8}};
    DualBound dual;
    std::optional<DualBound> part_dual;  // of subproblems
    std::optional<DualBound> fresh;      // see run_fresh_bound
    std::size_t fresh_setting = 0;
    std::uint64_t next_fresh_decode = 0;
    MoveState state;
    TreeNeighbourhood trees;
    BlockNeighbourhood blocks;
    DualBound::Steps steps;
    std::size_t setting = 0;
    std::uint64_t next_decode = 0;  // pass
    Found found;
    std::uint64_t used = 0;
    std::vector<BranchAndBound::Outcome> outcomes;
  };

  bool is_proven() const { return best_.choice && bound_ > best_.cost - 1; }
  bool is_within_gap() const { return is_proven() || (best_.choice && best_.cost - bound_ <= options_.gap_tolerance); }
  bool is_done() const {
    return is_within_gap() || is_complete_ || deadline_.is_over() || (options_.work > 0 && work_ >= options_.work);
  }
  std::uint64_t epoch_work() const {
    const std::uint64_t usual = std::clamp<std::uint64_t>(workers_[0].dual.work_per_pass() * 256, 200'000, kEpochWork);
    if (options_.work == 0) return usual;
    const std::uint64_t left = options_.work > work_ ? options_.work - work_ : 0;
    return std::min<std::uint64_t>(usual, left / static_cast<std::uint64_t>(options_.threads) + 1);
  }

  /// Fewer passes than this in a row say little about where the bound is going.
  std::uint64_t bound_work(std::uint64_t passes) const {
    const std::uint64_t left = options_.work == 0 ? kInfiniteWork : epoch_work();
    return std::min(std::max(epoch_work(), passes * workers_[0].dual.work_per_pass()), left);
  }

  void start() {
    Worker& worker = workers_[0];
    WorkMeter meter(deadline_, options_.work == 0 ? 10 * kEpochWork : options_.work);
    const auto attempt = [&](const CoreChoice& choice) {
      worker.state.set(choice);
      if (worker.state.repair(meter)) {
        worker.state.descend(meter);
        offer(worker, worker.state, Job::kBound);
      }
    };
    for (const CoreChoice& choice : options_.starts) attempt(choice);
    attempt(fewest_bytes_choice(core_));
    worker.used += meter.used();
    exchange();
  }

  static void offer(Worker& worker, const MoveState& state, Job by) {
    if (!state.is_feasible() || state.cost() >= worker.found.cost) return;
    worker.found = {state.choice(), state.cost(), by};
  }

  /// Best choices and bounds of all threads, in order, become everyone's.
  void exchange() {
    bool is_better = false;
    bool is_bound_better = false;
    for (Worker& worker : workers_) {
      work_ += worker.used;
      worker.used = 0;
      if (worker.found.choice && worker.found.cost < best_.cost) {
        const CoreEvaluation check = evaluate(core_, *worker.found.choice);
        if (check.excess == 0 && check.cost < core_.big_m && check.cost < best_.cost) {
          best_ = worker.found;
          best_.cost = check.cost;
          seconds_to_best_ = deadline_.elapsed();
          is_better = true;
        }
      }
      worker.found = {};
      if (options_.has_bound && worker.dual.best_bound() > bound_ && worker.dual.num_passes() > 0) {
        bound_ = worker.dual.best_bound();
        best_prices_ = worker.dual.best_prices();
        is_bound_better = true;
      }
    }
    if (bound_ > core_.big_m - 1 && !best_.choice) is_complete_ = true;
    if (options_.progress && (is_better || is_bound_better)) {
      options_.progress(is_better ? &*best_.choice : nullptr, best_.cost, std::min(bound_, best_.cost));
    }
  }

  double target() const {
    const double above = bound_ + 0.05 * std::abs(bound_) + 1;
    return best_.choice ? std::min(best_.cost, bound_ > 0 ? 20 * bound_ + 1 : best_.cost) : above;
  }

  /// The path of prices depends on the target from the first step on: once a good choice is known, a bound from nothing
  /// passes by where the old one stands still. It goes on in later turns until its steps are short.
  void run_fresh_bound(Worker& worker, std::uint64_t work) {
    if (!worker.fresh || worker.fresh->has_converged()) {
      worker.fresh.emplace(core_);
      worker.fresh_setting += 1;
    }
    const DualBound::Steps steps = Worker::kSteps[worker.fresh_setting % std::size(Worker::kSteps)];
    std::swap(*worker.fresh, worker.dual);
    std::swap(worker.next_decode, worker.next_fresh_decode);
    run_bound(worker, steps, work);
    std::swap(worker.next_decode, worker.next_fresh_decode);
    std::swap(*worker.fresh, worker.dual);
    if (worker.fresh->best_bound() <= worker.dual.best_bound()) return;
    worker.dual = *worker.fresh;
    worker.steps = steps;
  }

  void run_bound(Worker& worker, const DualBound::Steps& steps, std::uint64_t work) {
    WorkMeter meter(deadline_, work);
    const double goal = target();
    while (!meter.is_spent()) {
      meter.spend(worker.dual.work_per_pass());
      if (worker.dual.iterate(goal, steps) == kInfinity) break;
      if (best_.choice && worker.dual.best_bound() > best_.cost - 1) break;
      if (!best_.choice && worker.dual.best_bound() > core_.big_m - 1) break;
      if (worker.dual.num_passes() < worker.next_decode) continue;
      worker.next_decode = worker.dual.num_passes() + std::clamp<std::uint64_t>(worker.dual.num_passes() / 8, 4, 20);
      worker.state.set(worker.dual.decoded());
      WorkMeter part = meter.part(worker.dual.work_per_pass() * 4);
      if (worker.state.repair(part)) {
        worker.state.descend(part);
        offer(worker, worker.state, Job::kBound);
      }
      meter.merge(part);
    }
    worker.used += meter.used();
  }

  /// Drops the values that are in no better choice, if many are.
  void shrink() {
    if (core_.limits.empty() || !best_.choice || is_done()) return;
    const double gap = best_.cost - bound_;
    if (gap > kWorthShrinking * tried_gap_) return;
    tried_gap_ = gap;
    DualBound& dual = workers_[0].dual;  // which goes on from the best prices, whatever comes of this
    dual.raise_prices(best_prices_, bound_);
    dual.pass();
    work_ += dual.work_per_pass();
    std::vector<std::uint8_t> alive = dual.alive();
    fix_by_reduced_cost(core_, dual, best_.cost, alive);
    for (std::size_t node = 0; node < core_.num_nodes(); ++node) {
      alive[core_.first_value[node] + (*best_.choice)[node]] = 1;
    }
    const auto left = static_cast<double>(std::count(alive.begin(), alive.end(), 1));
    if (left > kShrinks * static_cast<double>(alive.size())) return;
    smaller_ = restrict_core(core_, alive, kMostEntries);
    if (smaller_) smaller_state_ = restrict_state(core_, *smaller_, dual.state());
  }

  /// The rest of the search, on the smaller core. It holds the best choice and all better ones, so its bound and what
  /// is proven there hold here.
  CoreSearchResult continue_on_smaller() {
    workers_.clear();
    CoreSearchOptions options = options_;
    if (options_.work > 0) options.work = options_.work > work_ ? options_.work - work_ : 1;
    options.seed = mix(options_.seed + num_turns_);
    options.starts = {smaller_->nearest(*best_.choice)};
    options.first_bound = std::move(smaller_state_);
    options.progress = [&](const CoreChoice* choice, double cost, double bound) {
      if (!options_.progress) return;
      const std::optional<CoreChoice> whole = choice ? std::optional(smaller_->expand(*choice)) : std::nullopt;
      options_.progress(whole && cost < best_.cost ? &*whole : nullptr, std::min(cost, best_.cost), bound);
    };
    CoreSearchResult result = search_with_portfolio(smaller_->core, options, deadline_);
    if (result.choice) result.choice = smaller_->expand(*result.choice);
    if (!result.choice || result.cost >= best_.cost) {
      result.choice = best_.choice;
      result.cost = best_.cost;
      result.found_by = kJobNames[static_cast<std::size_t>(best_.by)];
      result.seconds_to_best = seconds_to_best_;
    }
    result.bound = std::min(std::max(result.bound, bound_), result.cost);
    result.work += work_;
    result.statistics.insert(result.statistics.begin(),
                             {"smaller core",
                              {{"work before", static_cast<std::int64_t>(work_)},
                               {"values before", static_cast<std::int64_t>(core_.costs.size())},
                               {"values", static_cast<std::int64_t>(smaller_->core.costs.size())}}});
    return result;
  }

  /// The bound until it hardly moves, or its share of the time is up.
  void bound_first() {
    double before = -kInfinity;
    int still = 0;
    while (!is_done() && !smaller_ && still < 3) {
      const std::uint64_t work = bound_work(kFirstPasses);
      const double old_cost = best_.cost;
      in_parallel(options_.threads, [&](int thread) {
        Worker& worker = workers_[static_cast<std::size_t>(thread)];
        run_bound(worker, worker.steps, work);
      });
      exchange();
      ++num_epochs_[static_cast<std::size_t>(Job::kBound)];
      share_prices();
      const double gain = bound_ - before;
      before = bound_;
      const double gap = best_.choice ? best_.cost - bound_ : kInfinity;
      if (best_.choice && old_cost - best_.cost > 0.2 * gap) restart_steps(1);
      still = gain < 0.02 * gap && !(old_cost - best_.cost > 0.02 * gap) ? still + 1 : 0;
      shrink();
    }
  }

  /// Steps shrink towards the old target; a much better one is worth long steps again.
  void restart_steps(double step) {
    for (Worker& worker : workers_) worker.dual.restart_steps(step);
  }

  void share_prices() {
    for (Worker& worker : workers_) {
      if (worker.dual.best_bound() < bound_ &&
          !(worker.dual.best_bound() > bound_ - 0.05 * std::abs(best_.cost - bound_))) {
        worker.dual.raise_prices(best_prices_, bound_);
      }
      if (!worker.dual.has_converged()) continue;
      worker.setting += 1;
      worker.steps = Worker::kSteps[worker.setting % std::size(Worker::kSteps)];
      worker.dual.raise_prices(best_prices_, bound_);
      worker.dual.restart_steps(0.3);
    }
  }

  Job job_of(int thread) const {
    if (!options_.has_bound)
      return (num_turns_ + static_cast<std::uint64_t>(thread)) % 4 == 3 ? Job::kBlocks : Job::kTrees;
    if (uses_exact()) {
      // Branch and bound on all threads, but every eighth turn of the first thread looks for a better choice elsewhere.
      const bool is_move = thread == 0 && num_turns_ % 8 == 7;
      return !is_move ? Job::kExact : num_turns_ % 16 == 15 ? Job::kBlocks : Job::kTrees;
    }
    // Dives and bounds last longer than moves, so all threads are at them together and none waits.
    constexpr Job kTurns[] = {Job::kDive,  Job::kTrees, Job::kBlocks, Job::kBlocks,
                              Job::kBound, Job::kTrees, Job::kBlocks, Job::kBlocks};
    const Job job = kTurns[num_turns_ % std::size(kTurns)];
    // A bound without prices has but one path, and has come to its end.
    if (job == Job::kBound && (core_.limits.empty() || best_.cost - bound_ < 1e-4 * bound_)) return Job::kDive;
    if (thread % 2 == 0 || job == Job::kDive || job == Job::kBound) return job;
    return job == Job::kTrees ? Job::kBlocks : Job::kTrees;
  }

  bool uses_exact() const { return options_.is_exact && workers_[0].dual.work_per_pass() <= kExactPassWork; }

  void epoch() {
    if (uses_exact() && options_.has_bound && !exact_) {
      workers_[0].dual.raise_prices(best_prices_, bound_);
      workers_[0].dual.pass();
      exact_.emplace(core_, workers_[0].dual);
    }
    const std::uint64_t work = epoch_work() * (uses_exact() || options_.work > 0 ? 1 : kMovesPerExchange);
    std::vector<Job> jobs;
    for (int thread = 0; thread < options_.threads; ++thread) jobs.push_back(job_of(thread));
    std::vector<std::vector<BranchAndBound::Subproblem>> batches(jobs.size());
    if (exact_) {
      exact_->set_best_cost(best_.cost);
      const std::size_t each = static_cast<std::size_t>(work / (workers_[0].dual.work_per_pass() * 60) + 1);
      std::size_t wanted = 0;
      for (const Job job : jobs) wanted += job == Job::kExact ? each : 0;
      std::vector<BranchAndBound::Subproblem> all = exact_->take(std::min<std::size_t>(wanted, 64));
      std::size_t next = 0;
      for (std::size_t i = 0; i < all.size(); ++i, ++next) {
        while (jobs[next % jobs.size()] != Job::kExact) ++next;
        batches[next % jobs.size()].push_back(std::move(all[i]));
      }
    }
    in_parallel(options_.threads, [&](int thread) {
      const auto at = static_cast<std::size_t>(thread);
      run(workers_[at], jobs[at], thread, work, std::move(batches[at]));
    });
    for (Worker& worker : workers_) {
      for (BranchAndBound::Outcome& outcome : worker.outcomes) {
        if (outcome.choice && outcome.cost < worker.found.cost)
          worker.found = {outcome.choice, outcome.cost, Job::kExact};
        exact_->put(std::move(outcome));
      }
      worker.outcomes.clear();
    }
    for (const Job job : jobs) ++num_epochs_[static_cast<std::size_t>(job)];
    ++num_turns_;
    exchange();
    if (exact_) {
      exact_->set_best_cost(best_.cost);
      if (exact_->is_empty()) is_complete_ = true;
      if (exact_->bound() > bound_ && exact_->bound() <= best_.cost) {
        bound_ = exact_->bound();
        if (options_.progress) options_.progress(nullptr, best_.cost, bound_);
      }
    } else if (options_.has_bound) {
      share_prices();
    }
  }

  void run(Worker& worker, Job job, int thread, std::uint64_t work, std::vector<BranchAndBound::Subproblem> batch) {
    Random random = Random(options_.seed).fork(num_turns_ * 64 + static_cast<std::uint64_t>(thread));
    WorkMeter meter(deadline_, work);
    if (job == Job::kBound) {
      return run_fresh_bound(worker, bound_work(kFreshPasses));
    }
    if (job == Job::kExact) {
      WorkMeter endless(deadline_, std::numeric_limits<std::uint64_t>::max());
      double best = best_.cost < core_.big_m ? best_.cost : core_.big_m;
      if (!worker.part_dual) worker.part_dual.emplace(core_);
      for (BranchAndBound::Subproblem& item : batch) {
        worker.outcomes.push_back(exact_->process(std::move(item), *worker.part_dual, best, endless));
        best = std::min(best, worker.outcomes.back().cost);
      }
      worker.used += endless.used();
      return;
    }
    if (job == Job::kDive) {
      DualBound dual = worker.dual;
      dual.raise_prices(best_prices_, bound_);
      dual.restart_steps(0.1 + 0.3 * random.unit());
      WorkMeter part(deadline_, 5 * work);
      const double rate = 0.08 + 0.25 * random.unit();
      const int passes = 2 + static_cast<int>(random.below(5));
      if (const auto choice = dive(core_, dual, target(), rate, passes, worker.steps, part)) {
        worker.state.set(*choice);
        offer(worker, worker.state, Job::kDive);
      }
      worker.used += part.used();
      return;
    }
    if (!best_.choice) {
      // Nothing to improve yet: repair what a random start gives.
      CoreChoice choice = fewest_bytes_choice(core_);
      for (std::size_t node = 0; node < choice.size(); ++node) {
        if (random.below(8) == 0) choice[node] = static_cast<std::uint32_t>(random.below(core_.num_values(node)));
      }
      worker.state.set(choice);
      if (worker.state.repair(meter)) worker.state.descend(meter);
      offer(worker, worker.state, job);
      worker.used += meter.used() + 1000;
      return;
    }
    worker.state.set(*best_.choice);
    if (job == Job::kTrees) {
      run_trees(worker, random, meter, work);
    } else {
      while (!meter.is_spent()) {
        const std::size_t size = 8 + random.below(std::size_t{1} << (4 + random.below(5)));
        worker.blocks.move(worker.state, random, size, best_prices_, meter);
      }
      offer(worker, worker.state, Job::kBlocks);
    }
    worker.used += meter.used();
  }

  /// Annealed: a move may cost a little more, less and less so.
  void run_trees(Worker& worker, Random& random, WorkMeter& meter, std::uint64_t work) {
    worker.trees.set_prices(best_prices_);
    const double gap = std::max(best_.cost - std::max(bound_, 0.0), 0.0);
    constexpr double kHeat[] = {0, 3e-4, 3e-3, 3e-2};
    const double hottest = kHeat[random.below(4)] * gap;
    const std::size_t largest = std::size_t{8} << random.below(6);
    constexpr double kShares[] = {0, 0.3, 0.7, 1, 1.5};
    while (!meter.is_spent()) {
      const double left = 1 - static_cast<double>(meter.used()) / static_cast<double>(work);
      const double heat = left < 0.2 ? 0 : hottest * left * left;
      const double allowance =
          std::max(0.0, std::min(heat * random.unit(), best_.cost + 20 * heat - worker.state.cost()));
      const double share = kShares[random.below(5)];
      worker.trees.move(worker.state, random, 1 + random.below(largest), share, allowance, meter);
      if (worker.state.cost() < worker.found.cost && worker.state.cost() < best_.cost)
        offer(worker, worker.state, Job::kTrees);
    }
  }

  CoreSearchResult finish_result() {
    CoreSearchResult result;
    result.choice = best_.choice;
    result.cost = best_.cost;
    result.is_complete = is_proven() || is_complete_;
    result.bound = best_.choice ? (result.is_complete ? best_.cost : std::min(bound_, best_.cost))
                                : (is_complete_ ? core_.big_m : bound_);
    if (!options_.has_bound) result.bound = 0;
    result.found_by = kJobNames[static_cast<std::size_t>(best_.by)];
    result.seconds_to_best = seconds_to_best_;
    result.work = work_;
    StageStatistics search{"search", {}};
    search.figures.emplace_back("work", static_cast<std::int64_t>(work_));
    for (std::size_t job = 0; job < std::size(kJobNames); ++job) {
      search.figures.emplace_back(std::string("epochs of ") + kJobNames[job],
                                  static_cast<std::int64_t>(num_epochs_[job]));
    }
    StageStatistics dual{"dual", {}};
    StageStatistics blocks{"blocks", {}};
    std::uint64_t passes = 0, tried = 0, proven = 0;
    for (const Worker& worker : workers_) {
      passes += worker.dual.num_passes();
      tried += worker.blocks.num_blocks();
      proven += worker.blocks.num_proven();
    }
    dual.figures = {{"passes", static_cast<std::int64_t>(passes)},
                    {"work per pass", static_cast<std::int64_t>(workers_[0].dual.work_per_pass())},
                    {"priced times",
                     std::count_if(best_prices_.begin(), best_prices_.end(), [](double price) { return price > 0; })}};
    blocks.figures = {{"tried", static_cast<std::int64_t>(tried)},
                      {"proven as they stand", static_cast<std::int64_t>(proven)}};
    result.statistics = {search, dual, blocks};
    if (exact_) {
      result.statistics.push_back({"branch and bound",
                                   {{"subproblems", static_cast<std::int64_t>(exact_->num_processed())},
                                    {"open", static_cast<std::int64_t>(exact_->num_open())}}});
    }
    return result;
  }

  const CoreProblem& core_;
  const CoreSearchOptions& options_;
  const Deadline& deadline_;
  std::vector<Worker> workers_;
  std::optional<BranchAndBound> exact_;
  Found best_;
  double bound_ = -kInfinity;
  std::vector<double> best_prices_;
  double seconds_to_best_ = 0;
  std::uint64_t work_ = 0;
  std::uint64_t num_turns_ = 0;
  std::uint64_t num_epochs_[std::size(kJobNames)] = {};
  bool is_complete_ = false;
  double tried_gap_ = kInfinity;           // when values were last dropped, or tried to be
  std::optional<RestrictedCore> smaller_;  // on which the search goes on
  DualBound::State smaller_state_;
};

}  // namespace

CoreSearchResult search_core(const CoreProblem& core, const CoreSearchOptions& options, const Deadline& deadline) {
  const bool is_free = core.limits.empty() && options.is_exact && options.has_bound;
  return is_free ? search_without_limits(core, options, deadline) : search_with_portfolio(core, options, deadline);
}

CoreSearchResult search_with_portfolio(const CoreProblem& core, const CoreSearchOptions& options,
                                       const Deadline& deadline) {
  return PortfolioSearch(core, options, deadline).run();
}

}  // namespace shardplan
