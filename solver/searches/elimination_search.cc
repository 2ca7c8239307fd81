#include "solver/searches/elimination_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/bounds/elimination.h"
#include "solver/core/move_state.h"
#include "solver/presolve/presolve.h"

namespace shardplan {
namespace {

constexpr int kPriceRounds = 200;

class EliminationSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    check_problem(problem);
    PlanResult result;
    const auto offer = [&](const Choice& choice, const char* stage = "elimination") {
      const Evaluation evaluation = evaluate(problem, choice);
      const std::int64_t cost = evaluation.value(options.objective);
      if (!evaluation.feasible || (result.choice && cost >= result.cost)) return;
      result.choice = choice;
      result.cost = cost;
      result.status = PlanStatus::kFeasible;
      result.found_by = stage;
      result.seconds_to_best = deadline.elapsed();
    };
    if (options.start) offer(*options.start, "start");
    const Presolve presolve(problem, options.objective, deadline);
    result.statistics.push_back(presolve.statistics());
    if (presolve.is_infeasible()) {
      if (presolve.is_infeasibility_certain()) result.status = PlanStatus::kInfeasible;
      return result;
    }
    const CoreProblem& core = presolve.core();
    result.lower_bound = presolve.constant_cost();
    if (core.num_nodes() == 0) {
      offer(presolve.expand({}));
      if (result.choice) result.lower_bound = result.cost;
    } else if (const Elimination elimination(core); elimination.is_possible()) {
      run(core, elimination, presolve, deadline, options, result, offer);
    }
    if (!result.choice) return result;
    result.lower_bound = std::min(result.lower_bound, result.cost);
    result.status = result.lower_bound == result.cost ? PlanStatus::kOptimal : PlanStatus::kFeasible;
    return result;
  }

 private:
  template <class Offer>
  static void run(const CoreProblem& core, const Elimination& elimination, const Presolve& presolve,
                  const Deadline& deadline, const SearchOptions& options, PlanResult& result, const Offer& offer) {
    WorkMeter meter(deadline,
                    options.limits.work > 0 ? options.limits.work : std::numeric_limits<std::uint64_t>::max());
    std::size_t entries = 0;
    std::vector<double> prices(core.limits.size(), 0);
    std::vector<double> best_prices = prices;
    double best_bound = -std::numeric_limits<double>::infinity();
    double step = 1;
    int stalled = 0;
    int rounds = 0;
    for (; rounds < kPriceRounds; ++rounds) {
      std::vector<double> costs = core.costs;
      double limits_price = 0;
      std::vector<double> cumulative{0};
      for (std::size_t time = 0; time < prices.size(); ++time) {
        cumulative.push_back(cumulative.back() + prices[time]);
        limits_price += (cumulative[time + 1] - cumulative[time]) * static_cast<double>(core.limits[time]);
      }
      for (std::size_t node = 0; node < core.num_nodes(); ++node) {
        for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
          const CoreSegment& segment = core.segments[at];
          for (std::size_t value = 0; value < core.num_values(node); ++value) {
            costs[core.first_value[node] + value] += (cumulative[segment.end] - cumulative[segment.begin]) *
                                                     static_cast<double>(core.bytes[segment.bytes + value]);
          }
        }
      }
      const auto found = elimination.run(costs, meter);
      if (!found) break;
      entries = std::max(entries, found->entries);
      const double least = found->cost;
      // Every sum of the programme is off by at most half a unit in the last place of a magnitude below this.
      const double operations =
          static_cast<double>(core.costs.size() + core.neighbours.size() + core.segments.size() + core.limits.size());
      const double error = rounds == 0 && presolve.is_exact()
                               ? 0
                               : 8 * operations * 0x1p-53 * (std::abs(least) + 2 * limits_price + core.big_m * 0x1p-20);
      const double bound = least - limits_price - error;
      if (bound >= core.big_m && !result.choice) {
        if (presolve.is_infeasibility_certain()) result.status = PlanStatus::kInfeasible;
        return;
      }
      if (bound > best_bound) {
        best_bound = bound;
        best_prices = prices;
        stalled = 0;
        if (bound > 0) {
          result.lower_bound =
              std::max(result.lower_bound, presolve.constant_cost() + static_cast<std::int64_t>(std::ceil(bound)));
        }
      } else if (++stalled >= 10) {
        stalled = 0;
        step *= 0.6;
        prices = best_prices;
      }
      MoveState state(core, found->choice);
      const bool fits = state.is_feasible();
      WorkMeter part = meter.part(50'000'000);
      if (state.repair(part)) {
        state.descend(part);
        if (state.is_feasible()) offer(presolve.expand(state.choice()));
      }
      meter.merge(part);
      if (fits) offer(presolve.expand(found->choice));
      if (result.choice && result.lower_bound >= result.cost) break;
      if (core.limits.empty() || meter.is_spent()) break;
      const double target = result.choice ? static_cast<double>(result.cost - presolve.constant_cost())
                                          : best_bound + 0.05 * std::abs(best_bound) + 1;
      move_prices(core, found->choice, step * std::max(target - bound, 1.0), prices);
    }
    result.statistics.push_back({"elimination",
                                 {{"largest table", static_cast<std::int64_t>(elimination.largest_table())},
                                  {"entries of all tables", static_cast<std::int64_t>(entries)},
                                  {"rounds of prices", rounds + 1}}});
  }

  /// A step against the bytes that are over the limits (Polyak's rule).
  static void move_prices(const CoreProblem& core, const CoreChoice& choice, double distance,
                          std::vector<double>& prices) {
    std::vector<double> excess(core.limits.size() + 1, 0);
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        const double bytes = static_cast<double>(core.bytes[core.segments[at].bytes + choice[node]]);
        excess[core.segments[at].begin] += bytes;
        excess[core.segments[at].end] -= bytes;
      }
    }
    double bytes = 0;
    double norm = 0;
    for (std::size_t time = 0; time < prices.size(); ++time) {
      bytes += excess[time];
      excess[time] = bytes - static_cast<double>(core.limits[time]);
      if (prices[time] > 0 || excess[time] > 0) norm += excess[time] * excess[time];
    }
    if (norm <= 0) return;
    for (std::size_t time = 0; time < prices.size(); ++time) {
      prices[time] = std::max(prices[time] + distance / norm * excess[time], 0.0);
    }
  }
};

}  // namespace

std::unique_ptr<Search> make_elimination_search() { return std::make_unique<EliminationSearch>(); }

}  // namespace shardplan
