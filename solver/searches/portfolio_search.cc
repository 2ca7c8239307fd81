#include "solver/searches/portfolio_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/side_by_side.h"
#include "solver/bounds/branch_and_bound.h"
#include "solver/core/restricted_core.h"
#include "solver/searches/portfolio_worker.h"

// An algorithm portfolio (Huberman, Lukose, Hogg, Science 275, 1997): bounds, dives, neighbourhoods and branch and
// bound each stall at some point where another does not, and which one cannot be told in advance. So they take turns,
// on all threads, and share the best choice, the best bound and its prices.
//
// Threads meet at the end of epochs of fixed work instead of exchanging results whenever one of them finds something.
// This costs waiting for the slowest thread, a few per cent, and makes the answer depend on the work alone, not on the
// machine, its load, or the moment at which a lock was taken.
//
// Limitation: the schedule does not learn which engine pays on this problem. Epochs are so short (some 40 ms) that an
// engine that finds nothing costs little.

namespace shardplan {
namespace {

constexpr std::uint64_t kEpochWork = 40'000'000;  // per thread
// Up to this work per pass, branch and bound gets nearly all rounds; up to the smaller one, where it can have a share
// of them.
constexpr std::uint64_t kExactPassWork = 2'000'000;
constexpr std::uint64_t kSharedPassWork = 800'000;
constexpr std::uint64_t kExactPasses = 800;     // or if so many passes are allowed
constexpr std::uint64_t kFirstPasses = 60;      // of the bound, between exchanges
constexpr std::uint64_t kFreshPasses = 250;     // of a bound from scratch, in one round
constexpr std::uint64_t kFirstRest = 8;         // rounds to skip after it stalled; beside branch and bound
constexpr std::uint64_t kDivePasses = 400;      // sufficient for a dive
constexpr std::uint64_t kMovesPerExchange = 4;  // epochs of moves
// Of a subproblem of branch and bound; on large cores they end early, since the bound moves slowly.
constexpr std::uint64_t kMostPassesOfPart = 60, kUsualPassesOfPart = 25;
constexpr double kWorthShrinking = 0.7;             // of the gap at the last attempt to drop values
constexpr double kShrinks = 0.6;                    // a smaller core is made if at most this share is left
constexpr int kPatientExchanges = 3;                // exchanges without success
constexpr std::size_t kMostProcessors = 4;          // including those that process subproblems ahead
constexpr std::uint64_t kPassWorthAThread = 5'000;  // a subproblem takes some dozens of passes

/// Runs `task(thread)` on all threads and waits. Tasks share nothing that changes.
template <class Task>
void in_parallel(int threads, const Task& task) {
  const auto count = static_cast<std::size_t>(threads);
  side_by_side(count, count, [&](std::size_t, std::size_t thread) { task(static_cast<int>(thread)); });
}

class PortfolioSearch {
 public:
  PortfolioSearch(const CoreProblem& core, const CoreSearchOptions& options, const Deadline& deadline)
      : core_(core), options_(options), deadline_(deadline) {
    known_.prices.assign(core.limits.size(), 0);
    known_.known_cost = options.known_cost;
  }

  CoreSearchResult run() {
    workers_.reserve(static_cast<std::size_t>(options_.threads));
    for (int thread = 0; thread < options_.threads; ++thread) workers_.emplace_back(core_, deadline_, thread);
    if (options_.first_bound) continue_bound(*options_.first_bound);
    start();
    // Without memory limits the bound's path is unique, and it has been followed to the end.
    if (options_.has_bound && !(options_.first_bound && core_.limits.empty())) bound_first();
    while (!is_done() && !smaller_) {
      epoch();
      if (options_.has_bound && !uses_exact()) shrink();
    }
    return smaller_ ? continue_on_smaller() : finish_result();
  }

 private:
  bool is_within_gap() const {
    return known_.is_proven() || options_.is_good_enough(known_.best_cost(), known_.bound, work_);
  }
  bool is_work_spent() const {
    return (options_.work > 0 && work_ >= most_work()) ||
           (!goes_on_exactly() && options_.gives_up(known_.best_cost(), known_.bound, work_));
  }
  bool is_done() const { return is_within_gap() || is_complete_ || deadline_.is_over() || is_work_spent(); }

  std::uint64_t pass_work() const { return workers_[0].dual().work_per_pass(); }
  /// Whether branch and bound gets nearly all rounds.
  bool uses_exact() const {
    const std::uint64_t cheap = may_share_exact() ? kSharedPassWork : kExactPassWork;
    return options_.is_exact && (pass_work() <= cheap || pass_work() * kExactPasses <= options_.exact_work);
  }
  /// Whether it could get a share of them. Where memory binds, no prices of the whole core reach the bounds of the two
  /// halves of a node's values, so a few dozen subproblems raise the bound even where thousands would not prove it.
  bool may_share_exact() const {
    return options_.is_exact && options_.has_bound && options_.work == 0 && !core_.limits.empty();
  }
  bool shares_exact() const { return may_share_exact() && !uses_exact(); }
  bool goes_on_exactly() const { return options_.exact_work > 0 && uses_exact(); }
  /// Where work is limited.
  std::uint64_t most_work() const {
    return goes_on_exactly() ? std::max(options_.work, options_.exact_work) : options_.work;
  }
  std::uint64_t epoch_work() const {
    const std::uint64_t usual = std::clamp<std::uint64_t>(pass_work() * 256, 200'000, kEpochWork);
    if (options_.work == 0) return usual;
    const std::uint64_t left = most_work() > work_ ? most_work() - work_ : 0;
    return std::min<std::uint64_t>(usual, left / static_cast<std::uint64_t>(options_.threads) + 1);
  }
  /// Fewer consecutive passes than this say little about where the bound converges.
  std::uint64_t bound_work(std::uint64_t passes) const {
    const std::uint64_t left = options_.work == 0 ? kInfiniteWork : epoch_work();
    return std::min(std::max(epoch_work(), passes * pass_work()), left);
  }

  /// A dive that is cut short finds nothing.
  std::uint64_t dive_work(std::uint64_t work) const {
    return std::max(5 * work, options_.work == 0 ? kDivePasses * pass_work() : 0);
  }

  /// A unit of work takes several times as long with few values for each node. On small cores each part is soon proven.
  std::uint64_t part_work(std::uint64_t work) const { return uses_exact() ? work / 4 + 1 : dive_work(work); }

  /// A unit of work of trees takes as long as four of branch and bound, which they must not keep waiting.
  std::uint64_t trees_work(std::uint64_t work) const { return uses_exact() ? work / 4 + 1 : work; }

  void continue_bound(const DualBound::State& state) {
    known_.prices = state.prices;
    known_.bound = known_.priced_bound = state.bound;
    for (PortfolioWorker& worker : workers_) {
      worker.dual().restore(state, std::vector<std::uint8_t>(core_.costs.size(), 1));
      worker.dual().restart_steps(0.3);
    }
  }

  void start() {
    std::vector<CoreChoice> choices = options_.starts;
    choices.push_back(fewest_bytes_choice(core_));
    workers_[0].improve(choices, options_.work == 0 ? 10 * kEpochWork : options_.work);
    exchange();
  }

  /// Shares the best choices and bounds of all threads, in order.
  void exchange() {
    bool is_better = false;
    bool is_bound_better = false;
    for (PortfolioWorker& worker : workers_) {
      work_ += worker.take_used();
      const FoundChoice found = worker.take_found();
      if (found.choice && found.cost < known_.best.cost) {
        const CoreEvaluation check = evaluate(core_, *found.choice);
        if (check.excess == 0 && check.cost < core_.big_m && check.cost < known_.best.cost) {
          known_.best = found;
          known_.best.cost = check.cost;
          seconds_to_best_ = deadline_.elapsed();
          is_better = true;
        }
      }
      if (options_.has_bound && worker.dual().best_bound() > known_.priced_bound && worker.dual().num_passes() > 0) {
        known_.priced_bound = worker.dual().best_bound();
        known_.bound = std::max(known_.bound, known_.priced_bound);
        known_.prices = worker.dual().best_prices();
        is_bound_better = true;
      }
    }
    if (known_.bound > core_.big_m - 1 && !known_.best.choice) is_complete_ = true;
    if (options_.progress && (is_better || is_bound_better)) {
      options_.progress(is_better ? &*known_.best.choice : nullptr, known_.best.cost,
                        std::min(known_.bound, known_.best.cost));
    }
  }

  /// Makes a smaller core if reduced costs show that many values belong to no better choice.
  void shrink() {
    if (core_.limits.empty() || !known_.best.choice || is_done()) return;
    const double gap = known_.best.cost - known_.priced_bound;
    if (gap > kWorthShrinking * tried_gap_) return;
    tried_gap_ = gap;
    DualBound& dual = workers_[0].dual();  // continues from the best prices in any case
    dual.raise_prices(known_.prices, known_.priced_bound);
    dual.pass();
    work_ += dual.work_per_pass();
    std::vector<std::uint8_t> alive = dual.alive();
    dual.fix_by_reduced_cost(known_.best.cost, alive);
    for (std::size_t node = 0; node < core_.num_nodes(); ++node) {
      alive[core_.first_value[node] + (*known_.best.choice)[node]] = 1;
    }
    const auto left = static_cast<double>(std::count(alive.begin(), alive.end(), 1));
    if (left > kShrinks * static_cast<double>(alive.size())) return;
    smaller_ = restrict_core(core_, alive, kMostCoreEntries);
    if (smaller_) smaller_state_ = dual.restricted_state(*smaller_);
  }

  /// The rest of the search, on the smaller core. It contains the best choice and all better ones, so its bound and its
  /// proofs hold here.
  CoreSearchResult continue_on_smaller() {
    workers_.clear();
    CoreSearchOptions options = options_;
    if (options_.work > 0) options.work = options_.work > work_ ? options_.work - work_ : 1;
    options.count_as_done(work_);
    options.seed = mix(options_.seed + round_);
    options.starts = {smaller_->nearest(*known_.best.choice)};
    options.first_bound = std::move(smaller_state_);
    options.progress = [&](const CoreChoice* choice, double cost, double bound) {
      if (!options_.progress) return;
      const std::optional<CoreChoice> whole = choice ? std::optional(smaller_->expand(*choice)) : std::nullopt;
      options_.progress(whole && cost < known_.best.cost ? &*whole : nullptr, std::min(cost, known_.best.cost), bound);
    };
    CoreSearchResult result = search_with_portfolio(smaller_->core, options, deadline_);
    if (result.choice) result.choice = smaller_->expand(*result.choice);
    if (!result.choice || result.cost >= known_.best.cost) {
      result.choice = known_.best.choice;
      result.cost = known_.best.cost;
      result.found_by = to_string(known_.best.by);
      result.seconds_to_best = seconds_to_best_;
    }
    result.bound = std::min(std::max(result.bound, known_.bound), result.cost);
    result.work += work_;
    result.statistics.insert(result.statistics.begin(),
                             {"smaller core",
                              {{"work before", static_cast<std::int64_t>(work_)},
                               {"values before", static_cast<std::int64_t>(core_.costs.size())},
                               {"values", static_cast<std::int64_t>(smaller_->core.costs.size())}}});
    return result;
  }

  /// The bound until it hardly moves.
  void bound_first() {
    double before = -kInfinity;
    int still = 0;
    while (!is_done() && !smaller_ && still < kPatientExchanges) {
      const std::uint64_t work = bound_work(kFirstPasses);
      const double old_cost = known_.best.cost;
      in_parallel(options_.threads,
                  [&](int thread) { workers_[static_cast<std::size_t>(thread)].run_bound(known_, work); });
      exchange();
      ++num_epochs_[static_cast<std::size_t>(Engine::kBound)];
      for (PortfolioWorker& worker : workers_) worker.follow_prices(known_);
      const double gain = known_.bound - before;
      before = known_.bound;
      const double gap = known_.best_cost() - known_.bound;
      // Steps shrink towards the old target; a much better target justifies long steps again.
      if (known_.best.choice && old_cost - known_.best.cost > 0.2 * gap) {
        for (PortfolioWorker& worker : workers_) worker.dual().restart_steps(1);
      }
      const bool is_still = gain < kStandsStill * gap && !(old_cost - known_.best.cost > kStandsStill * gap);
      still = is_still ? still + 1 : 0;
      shrink();
    }
  }

  PortfolioSituation situation() const {
    // The path of a bound without prices is unique, and has ended.
    const bool is_close = known_.best_cost() - known_.bound < 1e-4 * known_.bound;
    const bool rests = shares_exact() && round_ < next_fresh_bound_;
    return {options_.has_bound, uses_exact(), shares_exact(), core_.limits.empty() || is_close || rests,
            options_.searches_parts && known_.best.choice};
  }

  void epoch() {
    if ((uses_exact() || shares_exact()) && options_.has_bound && !exact_) {
      DualBound& root = workers_[0].dual();
      root.raise_prices(known_.prices, known_.priced_bound);
      root.pass();
      exact_.emplace(core_, root);
      ahead_.emplace(*exact_, core_, deadline_, num_idle());
    }
    const std::uint64_t work = epoch_work() * (uses_exact() || options_.work > 0 ? 1 : kMovesPerExchange);
    std::vector<Engine> engines;
    for (int thread = 0; thread < options_.threads; ++thread) {
      engines.push_back(scheduled_engine(round_, thread, situation()));
    }
    std::vector<std::vector<BranchAndBound::Subproblem>> batches = take_batches(engines, work);
    const std::vector<const BranchAndBound::Subproblem*> beginnings = beginnings_of_dives();
    if (ahead_) expect(batches);
    in_parallel(options_.threads, [&](int thread) {
      const auto at = static_cast<std::size_t>(thread);
      run(workers_[at], engines[at], thread, work, std::move(batches[at]), beginnings[at]);
    });
    for (PortfolioWorker& worker : workers_) {
      for (BranchAndBound::Outcome& outcome : worker.take_outcomes()) exact_->put(std::move(outcome));
    }
    for (const Engine engine : engines) ++num_epochs_[static_cast<std::size_t>(engine)];
    ++round_;
    const double priced_before = known_.priced_bound;
    exchange();
    if (engines[0] == Engine::kBound) rest_if_still(priced_before);
    if (shares_exact()) restart_if_behind();
    if (exact_) take_exact_bound();
    if (options_.has_bound && !uses_exact()) {
      for (PortfolioWorker& worker : workers_) worker.follow_prices(known_);
    }
  }

  /// Subproblems for one epoch, by thread; threads that do not run branch and bound get none.
  std::vector<std::vector<BranchAndBound::Subproblem>> take_batches(const std::vector<Engine>& engines,
                                                                    std::uint64_t work) {
    std::vector<std::vector<BranchAndBound::Subproblem>> batches(engines.size());
    if (!exact_) return batches;
    exact_->set_best_cost(known_.best.cost);
    const std::uint64_t passes = uses_exact() ? kMostPassesOfPart : kUsualPassesOfPart;
    const std::size_t each = static_cast<std::size_t>(work / (pass_work() * passes) + 1);
    const auto num_exact = static_cast<std::size_t>(std::count(engines.begin(), engines.end(), Engine::kExact));
    std::vector<BranchAndBound::Subproblem> all = exact_->take(std::min<std::size_t>(num_exact * each, 64));
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i, ++next) {
      while (engines[next % engines.size()] != Engine::kExact) ++next;
      batches[next % engines.size()].push_back(std::move(all[i]));
    }
    return batches;
  }

  /// Processors without a thread of the search, if a subproblem is large enough to be worth waking one up.
  std::size_t num_idle() const {
    const std::size_t all = num_processors(kMostProcessors), busy = static_cast<std::size_t>(options_.threads);
    return all > busy && pass_work() >= kPassWorthAThread ? all - busy : 0;
  }

  /// The first batch is begun at once by its own thread. Next come the open subproblems, or the parts of these.
  void expect(const std::vector<std::vector<BranchAndBound::Subproblem>>& batches) {
    if (num_idle() == 0) return;
    std::vector<BranchAndBound::Subproblem> next;
    for (const auto& batch : batches) {
      for (std::size_t i = 1; i < batch.size(); ++i) next.push_back(batch[i]);
    }
    for (const BranchAndBound::Subproblem* open : exact_->most_promising(2 * kMostProcessors)) next.push_back(*open);
    ahead_->expect(std::move(next), known_.best_cost(core_));
  }

  /// After a bound from scratch that was no better, the next one has to wait, twice as long each time.
  void rest_if_still(double priced_before) {
    const double gap = known_.best_cost() - priced_before;
    const bool is_still = known_.priced_bound - priced_before < kStandsStill * gap;
    rest_ = is_still ? std::max(2 * rest_, kFirstRest) : 0;
    next_fresh_bound_ = round_ + rest_;
  }

  /// Prices that bound the whole core higher than the bounds of all subproblems do are the better start for further
  /// ones.
  void restart_if_behind() {
    if (!exact_ || exact_->bound() >= known_.priced_bound) return;
    num_subproblems_ += exact_->num_processed();
    ahead_.reset();
    exact_.reset();
  }

  /// By thread; null: the whole core. Every second dive starts in a subproblem.
  std::vector<const BranchAndBound::Subproblem*> beginnings_of_dives() const {
    const auto threads = static_cast<std::size_t>(options_.threads);
    std::vector<const BranchAndBound::Subproblem*> result;
    const std::uint64_t num_dives = num_epochs_[static_cast<std::size_t>(Engine::kDive)] / threads;
    if (exact_ && num_dives % 2 == 0) result = exact_->most_promising(threads);
    result.resize(threads, nullptr);
    return result;
  }

  void take_exact_bound() {
    exact_->set_best_cost(known_.best.cost);
    if (exact_->is_empty()) is_complete_ = true;
    if (exact_->bound() <= known_.bound || exact_->bound() > known_.best.cost) return;
    known_.bound = exact_->bound();
    if (options_.progress) options_.progress(nullptr, known_.best.cost, known_.bound);
  }

  void run(PortfolioWorker& worker, Engine engine, int thread, std::uint64_t work,
           std::vector<BranchAndBound::Subproblem> batch, const BranchAndBound::Subproblem* beginning) {
    Random random = Random(options_.seed).fork(round_ * 64 + static_cast<std::uint64_t>(thread));
    switch (engine) {
      case Engine::kBound:
        return worker.run_fresh_bound(known_, bound_work(kFreshPasses));
      case Engine::kDive:
        if (beginning == nullptr) return worker.run_dive(known_, random, dive_work(work));
        return worker.run_dive(*exact_, *beginning, known_, random, dive_work(work));
      case Engine::kPart:
        return worker.run_part(known_, options_, search_with_portfolio, random, part_work(work));
      case Engine::kTrees:
        return worker.run_neighbourhood(engine, known_, random, trees_work(work));
      case Engine::kBlocks:
        return worker.run_neighbourhood(engine, known_, random, work);
      case Engine::kExact:
        return worker.run_exact(*ahead_, known_, std::move(batch));
    }
  }

  std::optional<Limit> stopped_by(bool is_complete) const {
    if (is_complete) return std::nullopt;
    // The clock may have cut the last epoch short, even if another limit was reached in it.
    if (const auto limit = deadline_.reached()) return limit;
    return is_work_spent() ? Limit::kWork : Limit::kGap;
  }

  CoreSearchResult finish_result() const {
    CoreSearchResult result;
    result.choice = known_.best.choice;
    result.cost = known_.best.cost;
    result.is_complete = known_.is_proven() || is_complete_;
    result.stopped_by = stopped_by(result.is_complete);
    result.bound = known_.best.choice
                       ? (result.is_complete ? known_.best.cost : std::min(known_.bound, known_.best.cost))
                       : (is_complete_ ? core_.big_m : known_.bound);
    if (!options_.has_bound) result.bound = 0;
    result.found_by = to_string(known_.best.by);
    result.seconds_to_best = seconds_to_best_;
    result.work = work_;
    result.statistics = statistics();
    return result;
  }

  std::vector<StageStatistics> statistics() const {
    StageStatistics search{"search", {{"work", static_cast<std::int64_t>(work_)}}};
    for (const Engine engine : kEngines) {
      search.figures.emplace_back("epochs of " + std::string(to_string(engine)),
                                  static_cast<std::int64_t>(num_epochs_[static_cast<std::size_t>(engine)]));
    }
    std::uint64_t passes = 0, tried = 0, proven = 0;
    for (const PortfolioWorker& worker : workers_) {
      passes += worker.dual().num_passes();
      tried += worker.blocks().num_blocks();
      proven += worker.blocks().num_proven();
    }
    const auto priced = std::count_if(known_.prices.begin(), known_.prices.end(), [](double p) { return p > 0; });
    std::vector<StageStatistics> result = {
        search,
        {"dual",
         {{"passes", static_cast<std::int64_t>(passes)},
          {"work per pass", static_cast<std::int64_t>(pass_work())},
          {"priced times", priced}}},
        {"blocks",
         {{"tried", static_cast<std::int64_t>(tried)}, {"proven as they stand", static_cast<std::int64_t>(proven)}}}};
    if (exact_) {
      result.push_back({"branch and bound",
                        {{"subproblems", static_cast<std::int64_t>(num_subproblems_ + exact_->num_processed())},
                         {"open", static_cast<std::int64_t>(exact_->num_open())}}});
    }
    return result;
  }

  const CoreProblem& core_;
  const CoreSearchOptions& options_;
  const Deadline& deadline_;
  std::vector<PortfolioWorker> workers_;
  std::optional<BranchAndBound> exact_;
  std::optional<SubproblemsAhead> ahead_;  // while there is branch and bound
  PortfolioKnowledge known_;
  double seconds_to_best_ = 0;
  std::uint64_t work_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t num_epochs_[std::size(kEngines)] = {};
  bool is_complete_ = false;
  std::uint64_t num_subproblems_ = 0;              // before the current branch and bound
  std::uint64_t next_fresh_bound_ = 0, rest_ = 0;  // rounds
  double tried_gap_ = kInfinity;                   // when values were last dropped, or could have been
  std::optional<RestrictedCore> smaller_;          // on which the search continues
  DualBound::State smaller_state_;
};

}  // namespace

CoreSearchResult search_with_portfolio(const CoreProblem& core, const CoreSearchOptions& options,
                                       const Deadline& deadline) {
  return PortfolioSearch(core, options, deadline).run();
}

}  // namespace shardplan
