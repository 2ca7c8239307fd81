#include "solver/searches/elimination_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/bounds/elimination.h"
#include "solver/core/move_state.h"
#include "solver/incumbent.h"
#include "solver/presolve/presolve.h"

namespace shardplan {
namespace {

constexpr int kPriceRounds = 200;
constexpr std::uint64_t kRepairWork = 50'000'000;
constexpr int kPatientRounds = 10;  // rounds without a better bound before steps shorten

/// Prices of bytes, and the costs of values including them.
class Pricing {
 public:
  explicit Pricing(const CoreProblem& core) : core_(core), prices_(core.limits.size(), 0), best_(prices_) {}

  /// The core's costs plus the price of each value's bytes.
  std::vector<double> costs() {
    std::vector<double> result = core_.costs;
    limits_price_ = 0;
    std::vector<double> cumulative{0};
    for (std::size_t time = 0; time < prices_.size(); ++time) {
      cumulative.push_back(cumulative.back() + prices_[time]);
      limits_price_ += (cumulative[time + 1] - cumulative[time]) * static_cast<double>(core_.limits[time]);
    }
    for (std::size_t node = 0; node < core_.num_nodes(); ++node) {
      for (std::uint32_t at = core_.first_segment[node]; at < core_.first_segment[node + 1]; ++at) {
        const CoreSegment& segment = core_.segments[at];
        for (std::size_t value = 0; value < core_.num_values(node); ++value) {
          result[core_.first_value[node] + value] += (cumulative[segment.end] - cumulative[segment.begin]) *
                                                     static_cast<double>(core_.bytes[segment.bytes + value]);
        }
      }
    }
    return result;
  }
  /// The cost of the limits at the prices of the last `costs`.
  double limits_price() const { return limits_price_; }

  void keep() { best_ = prices_; }
  void go_back() { prices_ = best_; }

  /// A step against the bytes that exceed the limits (Polyak's rule).
  void move(const CoreChoice& choice, double distance) {
    std::vector<double> excess(core_.limits.size() + 1, 0);
    for (std::size_t node = 0; node < core_.num_nodes(); ++node) {
      for (std::uint32_t at = core_.first_segment[node]; at < core_.first_segment[node + 1]; ++at) {
        const double bytes = static_cast<double>(core_.bytes[core_.segments[at].bytes + choice[node]]);
        excess[core_.segments[at].begin] += bytes;
        excess[core_.segments[at].end] -= bytes;
      }
    }
    double bytes = 0;
    double norm = 0;
    for (std::size_t time = 0; time < prices_.size(); ++time) {
      bytes += excess[time];
      excess[time] = bytes - static_cast<double>(core_.limits[time]);
      if (prices_[time] > 0 || excess[time] > 0) norm += excess[time] * excess[time];
    }
    if (norm <= 0) return;
    for (std::size_t time = 0; time < prices_.size(); ++time) {
      prices_[time] = std::max(prices_[time] + distance / norm * excess[time], 0.0);
    }
  }

 private:
  const CoreProblem& core_;
  std::vector<double> prices_, best_;  // by time
  double limits_price_ = 0;
};

class EliminationSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    Incumbent incumbent(problem, options, deadline);
    if (options.start) incumbent.offer(*options.start, "start");
    const Presolve presolve(problem, options.objective, deadline);
    incumbent.report(&presolve.statistics());
    incumbent.add(presolve.statistics());
    if (presolve.is_infeasible()) {
      if (!presolve.is_infeasibility_certain()) return incumbent.result(deadline.reached());
      incumbent.set_infeasible();
      return incumbent.result({});
    }
    incumbent.raise_bound(presolve.constant_cost());
    if (presolve.core().num_nodes() == 0) {
      incumbent.offer(presolve.expand({}), "elimination");
      if (incumbent.has_choice()) incumbent.raise_bound(*incumbent.cost());
      return incumbent.result({});
    }
    const Elimination elimination(presolve.core());
    if (!elimination.is_possible()) {
      incumbent.set_obstacle("the tables of elimination would be too large");
      return incumbent.result({});
    }
    WorkMeter meter(deadline,
                    options.limits.work > 0 ? options.limits.work : std::numeric_limits<std::uint64_t>::max());
    run(elimination, presolve, meter, incumbent);
    return incumbent.result(meter.stopped_by());
  }

 private:
  static void run(const Elimination& elimination, const Presolve& presolve, WorkMeter& meter, Incumbent& incumbent) {
    const CoreProblem& core = presolve.core();
    Pricing pricing(core);
    std::size_t entries = 0;
    double best_bound = -kInfinity;
    double step = 1;
    int stalled = 0;
    int rounds = 0;
    for (; rounds < kPriceRounds; ++rounds) {
      const auto found = elimination.run(pricing.costs(), meter);
      if (!found) break;
      entries = std::max(entries, found->entries);
      const double bound = found->cost - pricing.limits_price() - error(presolve, found->cost, pricing, rounds == 0);
      if (bound >= core.big_m && !incumbent.has_choice()) {
        if (presolve.is_infeasibility_certain()) incumbent.set_infeasible();
        return;
      }
      if (bound > best_bound) {
        best_bound = bound;
        pricing.keep();
        stalled = 0;
        if (bound > 0) {
          incumbent.raise_bound(presolve.constant_cost() + static_cast<std::int64_t>(std::ceil(bound)));
        }
      } else if (++stalled >= kPatientRounds) {
        stalled = 0;
        step *= 0.6;
        pricing.go_back();
      }
      offer(presolve, found->choice, meter, incumbent);
      incumbent.report();
      if (incumbent.is_proven()) break;
      if (core.limits.empty() || meter.is_spent()) break;
      const double target = incumbent.has_choice() ? static_cast<double>(*incumbent.cost() - presolve.constant_cost())
                                                   : best_bound + 0.05 * std::abs(best_bound) + 1;
      pricing.move(found->choice, step * std::max(target - bound, 1.0));
    }
    incumbent.add({"elimination",
                   {{"largest table", static_cast<std::int64_t>(elimination.largest_table())},
                    {"entries of all tables", static_cast<std::int64_t>(entries)},
                    {"rounds of prices", rounds + 1}}});
  }

  /// The rounding error of a priced bound: every sum of the program has an error of at most half a unit in the last
  /// place of a magnitude below this. Without prices, integers below 2^53 are exact.
  static double error(const Presolve& presolve, double least, const Pricing& pricing, bool is_unpriced) {
    if (is_unpriced && presolve.is_exact()) return 0;
    const CoreProblem& core = presolve.core();
    const double operations =
        static_cast<double>(core.costs.size() + core.neighbours.size() + core.segments.size() + core.limits.size());
    return 8 * operations * 0x1p-53 * (std::abs(least) + 2 * pricing.limits_price() + core.big_m * 0x1p-20);
  }

  /// The choice itself if it fits, and what repairs and single moves make of it.
  static void offer(const Presolve& presolve, const CoreChoice& choice, WorkMeter& meter, Incumbent& incumbent) {
    MoveState state(presolve.core(), choice);
    const bool fits = state.is_feasible();
    WorkMeter part = meter.part(kRepairWork);
    if (state.repair(part)) {
      state.descend(part);
      if (state.is_feasible()) incumbent.offer(presolve.expand(state.choice()), "elimination");
    }
    meter.merge(part);
    if (fits) incumbent.offer(presolve.expand(choice), "elimination");
  }
};

}  // namespace

std::unique_ptr<Search> make_elimination_search() { return std::make_unique<EliminationSearch>(); }

}  // namespace shardplan
