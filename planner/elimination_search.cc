#include "planner/elimination_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/local_state.h"
#include "planner/presolve.h"

namespace shardplan {
namespace {

constexpr std::size_t kLargestTable = std::size_t{1} << 22;  // entries of one table
constexpr std::size_t kAllTables = std::size_t{1} << 25;     // of all tables together
constexpr int kPriceRounds = 200;

/// Costs over several nodes, the last one fastest.
struct Factor {
  std::vector<std::uint32_t> nodes;  // in increasing order
  std::vector<double> costs;
};

/// One elimination: `node` goes, a table over `others` comes, `best` has the node's value for each entry of it.
struct Step {
  std::uint32_t node = 0;
  std::vector<std::uint32_t> others;  // in increasing order
};

/// The order, by smallest next table first; nothing if some table would be too large.
std::optional<std::vector<Step>> elimination_order(const CoreProblem& core) {
  const std::size_t count = core.num_nodes();
  std::vector<std::vector<std::uint32_t>> neighbours(count);
  for (std::uint32_t node = 0; node < count; ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      neighbours[node].push_back(core.neighbours[slot].node);
    }
  }
  const auto size = [&](std::uint32_t node) {
    double entries = 1;
    for (const std::uint32_t other : neighbours[node]) entries *= static_cast<double>(core.num_values(other));
    return entries * static_cast<double>(core.num_values(node));
  };
  std::vector<double> sizes(count);
  for (std::uint32_t node = 0; node < count; ++node) sizes[node] = size(node);
  std::vector<bool> is_gone(count, false);
  std::vector<Step> steps;
  double total = 0;
  while (steps.size() < count) {
    std::uint32_t best = 0;
    bool is_found = false;
    for (std::uint32_t node = 0; node < count; ++node) {
      if (!is_gone[node] && (!is_found || sizes[node] < sizes[best])) best = node, is_found = true;
    }
    total += sizes[best];
    if (sizes[best] > static_cast<double>(kLargestTable) || total > static_cast<double>(kAllTables))
      return std::nullopt;
    is_gone[best] = true;
    const std::vector<std::uint32_t> others = neighbours[best];
    for (const std::uint32_t a : others) {
      std::vector<std::uint32_t> joined;
      std::set_union(neighbours[a].begin(), neighbours[a].end(), others.begin(), others.end(),
                     std::back_inserter(joined));
      std::erase_if(joined, [&](std::uint32_t node) { return node == a || node == best; });
      neighbours[a] = std::move(joined);
      sizes[a] = size(a);
    }
    steps.push_back({best, others});
  }
  return steps;
}

/// Eliminates in the given order with the given node costs. Returns the least cost and its choice.
double eliminate(const CoreProblem& core, const std::vector<Step>& steps, const std::vector<double>& costs,
                 CoreChoice& choice) {
  std::vector<std::vector<Factor>> factors(core.num_nodes());  // at the node of the scope that goes first
  std::vector<std::size_t> position(core.num_nodes());
  for (std::size_t at = 0; at < steps.size(); ++at) position[steps[at].node] = at;
  const auto place = [&](Factor factor) {
    const auto first = std::min_element(factor.nodes.begin(), factor.nodes.end(),
                                        [&](std::uint32_t a, std::uint32_t b) { return position[a] < position[b]; });
    factors[*first].push_back(std::move(factor));
  };
  for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const CoreNeighbour& neighbour = core.neighbours[slot];
      if (neighbour.node < node) continue;
      Factor factor{{node, neighbour.node}, {}};
      for (std::size_t value = 0; value < core.num_values(node); ++value) {
        for (std::size_t other = 0; other < core.num_values(neighbour.node); ++other) {
          factor.costs.push_back(core.edge_cost(neighbour, value, other));
        }
      }
      place(std::move(factor));
    }
  }
  double constant = 0;
  std::vector<std::vector<std::uint32_t>> best(core.num_nodes());
  std::vector<std::size_t> digits;
  for (const Step& step : steps) {
    const std::size_t values = core.num_values(step.node);
    std::size_t entries = 1;
    for (const std::uint32_t other : step.others) entries *= core.num_values(other);
    Factor result{step.others, std::vector<double>(entries)};
    best[step.node].resize(entries);
    digits.assign(step.others.size(), 0);
    // For each factor, how far a step of each node of the new scope, and of the node itself, moves in its table.
    struct Walk {
      const double* costs;
      std::size_t own;
      std::vector<std::size_t> strides;
      std::size_t at = 0;
    };
    std::vector<Walk> walks;
    for (const Factor& factor : factors[step.node]) {
      Walk walk{factor.costs.data(), 0, std::vector<std::size_t>(step.others.size(), 0)};
      std::size_t stride = 1;
      for (std::size_t i = factor.nodes.size(); i-- > 0;) {
        if (factor.nodes[i] == step.node) {
          walk.own = stride;
        } else {
          const auto at = std::lower_bound(step.others.begin(), step.others.end(), factor.nodes[i]);
          walk.strides[static_cast<std::size_t>(at - step.others.begin())] = stride;
        }
        stride *= core.num_values(factor.nodes[i]);
      }
      walks.push_back(std::move(walk));
    }
    const double* const own = costs.data() + core.first_value[step.node];
    for (std::size_t entry = 0; entry < entries; ++entry) {
      double least = std::numeric_limits<double>::infinity();
      for (std::uint32_t value = 0; value < values; ++value) {
        double sum = own[value];
        for (const Walk& walk : walks) sum += walk.costs[walk.at + value * walk.own];
        if (sum < least) {
          least = sum;
          best[step.node][entry] = value;
        }
      }
      result.costs[entry] = least;
      for (std::size_t i = step.others.size(); i-- > 0;) {
        const std::size_t size = core.num_values(step.others[i]);
        for (Walk& walk : walks) walk.at += walk.strides[i];
        if (++digits[i] < size) break;
        for (Walk& walk : walks) walk.at -= walk.strides[i] * size;
        digits[i] = 0;
      }
    }
    factors[step.node].clear();
    if (step.others.empty()) {
      constant += result.costs[0];
    } else {
      place(std::move(result));
    }
  }
  choice.assign(core.num_nodes(), 0);
  for (std::size_t at = steps.size(); at-- > 0;) {
    std::size_t entry = 0;
    for (const std::uint32_t other : steps[at].others) entry = entry * core.num_values(other) + choice[other];
    choice[steps[at].node] = best[steps[at].node][entry];
  }
  return constant;
}

class EliminationSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    check_problem(problem);
    PlanResult result;
    const auto offer = [&](const Choice& choice) {
      const Evaluation evaluation = evaluate(problem, choice);
      const std::int64_t cost = evaluation.value(options.objective);
      if (!evaluation.feasible || (result.choice && cost >= result.cost)) return;
      result.choice = choice;
      result.cost = cost;
      result.found_by = "elimination";
      result.seconds_to_best = deadline.elapsed();
    };
    const Presolve presolve(problem, options.objective, deadline);
    result.statistics.push_back(presolve.statistics());
    if (presolve.is_infeasible()) {
      if (presolve.is_never_certain()) result.status = PlanStatus::kInfeasible;
      return result;
    }
    const CoreProblem& core = presolve.core();
    result.lower_bound = presolve.base();
    if (core.num_nodes() == 0) {
      offer(presolve.expand({}));
      if (result.choice) result.lower_bound = result.cost;
    } else if (const auto steps = elimination_order(core)) {
      run(core, *steps, presolve, deadline, options, result, offer);
    }
    if (result.status == PlanStatus::kInfeasible || !result.choice) return result;
    result.lower_bound = std::min(result.lower_bound, result.cost);
    result.status = result.lower_bound == result.cost ? PlanStatus::kOptimal : PlanStatus::kFeasible;
    return result;
  }

 private:
  template <class Offer>
  static void run(const CoreProblem& core, const std::vector<Step>& steps, const Presolve& presolve,
                  const Deadline& deadline, const SearchOptions& options, PlanResult& result, const Offer& offer) {
    std::uint64_t work = 0;
    std::uint64_t round_work = 0;
    for (const Step& step : steps) {
      std::uint64_t entries = core.num_values(step.node);
      for (const std::uint32_t other : step.others) entries *= core.num_values(other);
      round_work += entries;
    }
    std::vector<double> prices(core.limits.size(), 0);
    std::vector<double> best_prices = prices;
    double best_bound = -std::numeric_limits<double>::infinity();
    double step = 1;
    int stalled = 0;
    int rounds = 0;
    for (; rounds < kPriceRounds && !deadline.is_over(); ++rounds) {
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
      CoreChoice choice;
      const double least = eliminate(core, steps, costs, choice);
      work += round_work;
      // Every sum of the programme is off by at most half a unit in the last place of a magnitude below this.
      const double operations =
          static_cast<double>(core.costs.size() + core.neighbours.size() + core.segments.size() + core.limits.size());
      const double error = rounds == 0 && presolve.is_exact()
                               ? 0
                               : 8 * operations * 0x1p-53 * (std::abs(least) + 2 * limits_price + core.never * 0x1p-20);
      const double bound = least - limits_price - error;
      if (bound >= core.never && !result.choice) {
        if (presolve.is_never_certain()) result.status = PlanStatus::kInfeasible;
        return;
      }
      if (bound > best_bound) {
        best_bound = bound;
        best_prices = prices;
        stalled = 0;
        if (bound > 0) {
          result.lower_bound =
              std::max(result.lower_bound, presolve.base() + static_cast<std::int64_t>(std::ceil(bound)));
        }
      } else if (++stalled >= 10) {
        stalled = 0;
        step *= 0.6;
        prices = best_prices;
      }
      LocalState state(core, choice);
      const bool fits = state.is_feasible();
      WorkMeter meter(deadline, 50'000'000);
      if (state.repair(meter)) {
        state.descend(meter);
        if (state.is_feasible()) offer(presolve.expand(state.choice()));
      }
      if (fits) offer(presolve.expand(choice));
      if (result.choice && result.lower_bound >= result.cost) break;
      if (core.limits.empty() || (options.limits.work > 0 && work >= options.limits.work)) break;
      const double target = result.choice ? static_cast<double>(result.cost - presolve.base())
                                          : best_bound + 0.05 * std::abs(best_bound) + 1;
      move_prices(core, choice, step * std::max(target - bound, 1.0), prices);
    }
    result.statistics.push_back(
        {"elimination",
         {{"entries of all tables", static_cast<std::int64_t>(round_work)}, {"rounds of prices", rounds + 1}}});
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
