#include "solver/searches/unlimited_search.h"

#include <algorithm>
#include <future>
#include <limits>
#include <memory>

#include "base/random.h"
#include "base/side_by_side.h"
#include "solver/bounds/dual_bound.h"
#include "solver/bounds/elimination.h"
#include "solver/core/move_state.h"
#include "solver/core/restricted_core.h"
#include "solver/core/work_meter.h"
#include "solver/heuristics/restriction_heuristic.h"
#include "solver/searches/portfolio_search.h"
#include "solver/searches/promising_part.h"

// Without memory limits the problem is a sum of terms over nodes and edges: a graphical model (weighted constraint
// satisfaction). Presolve has folded all trees and chains, so what remains has cycles. The steps, in the order of their
// cost:
//
// Elimination (solver/bounds/elimination.h) is exact and takes time exponential in the width of the graph, as far as
// the matrices distinguish values; models are narrow, so it decides most of them at once. Where its tables would be too
// large, message passing bounds the cost, and the choice decoded from it is improved node by node. Given a bound and a
// choice, reduced-cost fixing removes the values that belong to no better choice; then the core is made smaller, passes
// become cheaper, elimination may become possible, and the loop starts again: large cores are decided in this way. A
// restriction heuristic (elimination among the values of least reduced cost) finds the choices that decoding misses on
// cycles. Where passes are expensive, all these steps on a core of such values alone take the work of one pass and find
// what would take dozens; they run beside the passes. Only what stalls after all this goes to the portfolio, in growing slices, since any better
// choice lets the loop continue.
//
// The obvious alternative, branch and bound from the start, would prove again in each subproblem what fixing proves
// once and for all. Limitation: bounds of single edges and nodes only, no higher-order cuts, so a small gap can remain
// on dense cores.

namespace shardplan {
namespace {

constexpr std::uint64_t kShortWork = 300'000'000;  // of elimination while the bound still moves, at most
/// While the bound moves, passes soon make the core so much smaller that elimination takes a fraction: it is tried only if
/// its work is at most this, or at most this many times the work so far.
constexpr std::uint64_t kLittleWork = 10'000'000, kTimesPasses = 2;
constexpr std::uint64_t kLongWork = 2'000'000'000;  // when it no longer does
constexpr std::uint64_t kPassesPerRound = 8;        // between attempts to remove values
constexpr double kShrinksEnough = 0.8;  // a smaller core is made if at most this share of the values is left
constexpr std::uint64_t kFirstSlice = 100'000'000;  // of the portfolio; the next ones are longer
constexpr double kWorthATry = 0.7;                  // of the gap at the last attempt of a restriction
constexpr int kPatientLooks = 3;                    // checks without success
/// Where passes are large, the promising part of the core is searched by itself with the work of one. At first it has so
/// many values for each node; more after a search that ended early, fewer after one that did not.
constexpr double kPromisingValues = 2.5, kMostPromisingValues = 20;
constexpr double kMorePromising = 1.5, kFewerPromising = 0.75;
constexpr double kFarForRestriction = 0.1;  // of the cost, where a part is searched as well

class UnlimitedSearch {
 public:
  UnlimitedSearch(const CoreProblem& core, const CoreSearchOptions& options, const Deadline& deadline)
      : options_(options),
        deadline_(deadline),
        meter_(deadline, options.work > 0 ? options.work : kInfiniteWork),
        core_(&core),
        dual_(std::make_unique<DualBound>(core)) {}

  CoreSearchResult run() {
    if (eliminate(affordable())) return finish_result();
    if (options_.first_bound) {
      dual_->restore(*options_.first_bound, std::vector<std::uint8_t>(core_->costs.size(), 1));
    }
    for (const CoreChoice& choice : options_.starts) improve(choice);
    pass_and_fix();
    const bool has_news = !best_ || best_cost_ - bound_ < tried_gap_;
    if (has_news && !is_done()) try_restriction();  // the last passes are the most informative
    finish_part();
    if (!is_done()) eliminate(kLongWork);
    for (std::uint64_t slice = 0; !is_done() && !meter_.is_spent(); ++slice) {
      const double cost = best_cost_;
      search_in_slice(slice);
      // A better choice allows more values to be removed.
      if (!is_done() && best_cost_ < cost) pass_and_fix();
    }
    return finish_result();
  }

 private:
  bool is_proven() const { return is_complete_ || (best_ && bound_ > best_cost_ - 1); }
  bool is_done() const { return is_proven() || options_.is_good_enough(known_cost(), bound_, meter_.used()); }
  /// Infinite if none is known.
  double known_cost() const { return std::min(best_cost_, options_.known_cost); }

  /// The work of an elimination that is worth its time now.
  std::uint64_t affordable() const { return std::min(kShortWork, std::max(kLittleWork, kTimesPasses * meter_.used())); }

  /// A choice of the current core.
  void offer(const CoreChoice& choice, double cost, const char* stage) {
    if (cost >= best_cost_ || cost >= core_->big_m) return;
    best_ = expand(choice, restrictions_.size());
    best_cost_ = cost;
    found_by_ = stage;
    seconds_to_best_ = deadline_.elapsed();
    report(true);
  }
  void report(bool is_better) const {
    if (options_.progress) options_.progress(is_better ? &*best_ : nullptr, best_cost_, std::min(bound_, best_cost_));
  }

  void improve(const CoreChoice& choice, const char* stage = "bound") {
    MoveState state(*core_, choice);
    state.descend(meter_);
    if (state.is_feasible()) offer(state.choice(), evaluate(*core_, state.choice()).cost, stage);
  }

  /// True if it decided the core, with at most this much work.
  bool eliminate(std::uint64_t work) {
    if (!options_.eliminates) return false;
    const Elimination elimination(*core_);
    if (options_.work > 0) work = std::min(work, options_.work / 4);
    if (!elimination.is_possible() || elimination.work() > static_cast<double>(work)) return false;
    WorkMeter part = meter_.part(work);
    const auto found = elimination.run(core_->costs, part);
    meter_.merge(part);
    if (!found) return false;
    statistics_.push_back({"elimination",
                           {{"nodes", static_cast<std::int64_t>(core_->num_nodes())},
                            {"values", static_cast<std::int64_t>(core_->costs.size())},
                            {"largest table", static_cast<std::int64_t>(elimination.largest_table())},
                            {"entries of all tables", static_cast<std::int64_t>(found->entries)},
                            {"repeated steps", static_cast<std::int64_t>(found->repeated_steps)}}});
    // Above 2^53 sums are rounded, each by at most half a unit in the last place of the cost.
    const double operations = static_cast<double>(core_->costs.size() + core_->neighbours.size());
    const double bound = core_->big_m < 0x1p53 ? found->cost : found->cost * (1 - 8 * operations * 0x1p-53);
    bound_ = std::max(bound_, std::min(bound, best_cost_));
    offer(found->choice, evaluate(*core_, found->choice).cost, "elimination");
    if (bound >= core_->big_m || bound > best_cost_ - 1) is_complete_ = true;
    return true;
  }

  void pass_and_fix() {
    pass_and_fix_until_still();
    finish_part();
  }
  /// Passes until the bound stalls; values are removed as soon as their reduced cost shows that no better choice has
  /// them.
  void pass_and_fix_until_still() {
    double before = -kInfinity;
    int still = 0;
    // A little of limited work is always reserved for the other steps.
    const std::uint64_t most = options_.work > 0
                                   ? meter_.used() + (options_.work - std::min(options_.work, meter_.used())) / 16 * 15
                                   : kInfiniteWork;
    while (!meter_.is_spent() && meter_.used() < most && still < kPatientLooks) {
      for (std::uint64_t pass = 0; pass < kPassesPerRound && !meter_.is_spent(); ++pass) {
        ++num_passes_;
        meter_.spend(dual_->work_per_pass());
        if (dual_->pass_ahead() == kInfinity) is_complete_ = true;
      }
      finish_part();
      if (is_complete_ || meter_.is_stopped()) return;
      dual_->suit_precision(known_cost(), dual_->best_bound());
      const bool is_higher = dual_->best_bound() > bound_;
      bound_ = std::max(bound_, dual_->best_bound());
      improve(dual_->decoded());
      if (is_higher) report(false);
      if (bound_ >= core_->big_m - 1 && !best_) is_complete_ = true;
      if (is_proven()) return;
      const double gain = bound_ - before;
      before = bound_;
      if (!best_ || best_cost_ - bound_ < kWorthATry * tried_gap_) try_restriction();
      if (is_done()) return;
      const bool is_smaller = known_cost() < kInfinity && fix_values();
      if (is_proven()) return;
      if (is_smaller && eliminate(affordable())) return;
      still = !is_smaller && gain < kStandsStill * (known_cost() - bound_) ? still + 1 : 0;
      if (is_done()) return;
    }
  }

  void try_restriction() {
    tried_gap_ = best_cost_ - bound_;
    const bool searches_part = options_.searches_parts && best_ && dual_->work_per_pass() >= CoreProblem::kLargePass;
    // While the gap is large, reduced costs say little about single values, and the part finds more beside the passes.
    const bool waits = searches_part && tried_gap_ > kFarForRestriction * best_cost_;
    if (options_.eliminates && !waits) {
      if (const auto found = restriction_heuristic(*core_, *dual_, meter_, restricted_share_)) {
        restricted_share_ = found->share;
        improve(found->choice, "restriction");
      }
    }
    if (searches_part && !is_done()) begin_part();
  }

  /// A choice of the whole core, in this core or the nearest to it.
  CoreChoice nearest(CoreChoice choice) const {
    for (const auto& restriction : restrictions_) choice = restriction->nearest(choice);
    return choice;
  }
  /// A choice of the core after that many restrictions in terms of the whole core.
  CoreChoice expand(CoreChoice choice, std::size_t num_restrictions) const {
    for (std::size_t i = num_restrictions; i-- > 0;) choice = restrictions_[i]->expand(choice);
    return choice;
  }

  /// Searches a part beside the passes; `finish_part` receives the result.
  void begin_part() {
    auto part =
        PromisingPart::of(*core_, *dual_, nearest(*best_), promising_per_node_, options_, dual_->work_per_pass());
    if (!part) return;
    restrictions_of_part_ = restrictions_.size();
    part_ = begin_beside(
        [part = *std::move(part), deadline = deadline_] { return part.search(deadline, search_without_limits); });
  }
  void finish_part() {
    if (!part_.valid()) return;
    const CoreSearchResult found = part_.get();
    meter_.spend(found.work);
    if (found.choice) improve(nearest(expand(*found.choice, restrictions_of_part_)), "promising part");
    promising_per_node_ *= found.stopped_by == Limit::kWork ? kFewerPromising : kMorePromising;
    promising_per_node_ = std::min(promising_per_node_, kMostPromisingValues);
  }

  /// True if the core became much smaller.
  bool fix_values() {
    std::vector<std::uint8_t> alive = dual_->alive();
    if (!dual_->fix_by_reduced_cost(known_cost(), alive)) return false;
    for (std::size_t node = 0; node < core_->num_nodes(); ++node) {
      const auto begin = alive.begin() + core_->first_value[node];
      const auto end = alive.begin() + core_->first_value[node + 1];
      if (std::find(begin, end, 1) == end) {
        is_complete_ = true;  // nothing is better than the best choice
        return true;
      }
    }
    dual_->set_alive(alive);
    const auto left = static_cast<double>(std::count(alive.begin(), alive.end(), 1));
    if (left > kShrinksEnough * static_cast<double>(alive.size())) return false;
    auto smaller = restrict_core(*core_, alive, kMostCoreEntries);
    if (!smaller) return false;
    const DualBound::State state = dual_->restricted_state(*smaller);
    restrictions_.push_back(std::make_unique<RestrictedCore>(*std::move(smaller)));
    // The core before this one is only needed to expand choices, which takes its values but not its matrices.
    if (restrictions_.size() > 1) {
      CoreProblem& before = restrictions_[restrictions_.size() - 2]->core;
      before.matrices.reset();
      before.rounded.reset();
    }
    core_ = &restrictions_.back()->core;
    restricted_share_ = 0;
    dual_ = std::make_unique<DualBound>(*core_);
    dual_->restore(state, std::vector<std::uint8_t>(core_->costs.size(), 1));
    return true;
  }

  /// All other steps, on what remains.
  void search_in_slice(std::uint64_t slice) {
    CoreSearchOptions options = options_;
    options.count_as_done(meter_.used());
    options.work = kFirstSlice << std::min<std::uint64_t>(slice, 20);
    options.exact_work = 0;
    if (options_.work > 0) options.work = std::min(options.work, options_.work - meter_.used());
    options.seed = mix(options_.seed + slice);
    options.starts.clear();
    options.first_bound = dual_->state();
    if (best_) options.starts.push_back(nearest(*best_));
    options.progress = [&](const CoreChoice* choice, double cost, double bound) {
      bound_ = std::max(bound_, std::min(bound, best_cost_));
      if (choice != nullptr) {
        offer(*choice, cost, "search");
      } else {
        report(false);
      }
    };
    CoreSearchResult rest = search_with_portfolio(*core_, options, deadline_);
    if (rest.choice) offer(*rest.choice, rest.cost, "search");
    if (found_by_ == "search") found_by_ = rest.found_by;
    bound_ = std::max(bound_, std::min(rest.bound, best_cost_));
    is_complete_ = is_complete_ || rest.is_complete;
    meter_.spend(rest.work);
    rest_statistics_ = std::move(rest.statistics);
  }

  CoreSearchResult finish_result() {
    CoreSearchResult result;
    result.choice = best_;
    result.cost = best_cost_;
    result.is_complete = is_proven();
    result.stopped_by = stopped_by(result.is_complete);
    result.bound = best_ ? (result.is_complete && is_exact_bound() ? best_cost_ : std::min(bound_, best_cost_))
                         : (is_complete_ ? std::min(core_->big_m, known_cost()) : bound_);
    result.found_by = found_by_;
    result.seconds_to_best = seconds_to_best_;
    if (num_passes_ > 0) {
      statistics_.push_back({"passes without memory",
                             {{"passes", static_cast<std::int64_t>(num_passes_)},
                              {"times the core was made smaller", static_cast<std::int64_t>(restrictions_.size())},
                              {"nodes", static_cast<std::int64_t>(core_->num_nodes())},
                              {"values left", static_cast<std::int64_t>(core_->costs.size())}}});
    }
    for (StageStatistics& stage : rest_statistics_) statistics_.push_back(std::move(stage));
    result.work = meter_.used();
    result.statistics = std::move(statistics_);
    return result;
  }
  std::optional<Limit> stopped_by(bool is_complete) const {
    if (is_complete) return std::nullopt;
    // The clock may have cut the last step short, even if another limit was reached in it.
    if (const auto limit = deadline_.reached()) return limit;
    if (meter_.is_spent()) return Limit::kWork;
    return is_done() ? std::optional(Limit::kGap) : std::nullopt;
  }
  bool is_exact_bound() const { return core_->big_m < 0x1p53; }

  const CoreSearchOptions& options_;
  const Deadline& deadline_;
  WorkMeter meter_;
  const CoreProblem* core_;                                    // the smallest one so far
  std::vector<std::unique_ptr<RestrictedCore>> restrictions_;  // each of the one before it
  std::unique_ptr<DualBound> dual_;
  std::optional<CoreChoice> best_;  // of the whole core
  double best_cost_ = kInfinity;
  double bound_ = -kInfinity;
  bool is_complete_ = false;
  std::string found_by_;
  double seconds_to_best_ = 0;
  std::uint64_t num_passes_ = 0;
  double tried_gap_ = kInfinity;
  double promising_per_node_ = kPromisingValues;
  std::future<CoreSearchResult> part_;    // the search of a promising part, if one is running ...
  std::size_t restrictions_of_part_ = 0;  // ... and how often the core that it is a part of had been made smaller
  std::size_t restricted_share_ = 0;      // that the restriction heuristic was able to search in this core
  std::vector<StageStatistics> statistics_;
  std::vector<StageStatistics> rest_statistics_;  // of the last slice
};

}  // namespace

CoreSearchResult search_without_limits(const CoreProblem& core, const CoreSearchOptions& options,
                                       const Deadline& deadline) {
  return UnlimitedSearch(core, options, deadline).run();
}

}  // namespace shardplan
