#include "solver/bounds/branch_and_bound.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "solver/core/memory_propagation.h"
#include "solver/core/move_state.h"
#include "solver/core/restricted_core.h"

// Branching splits the values of one node. With prices, choices that are nearly optimal often differ in how many bytes
// a node takes; splitting there, by the price of the bytes, moves the bound most, since each half gets its own prices.
// If there is no such node, the node whose second-best value is nearest to its best is split.
//
// A subproblem continues from its parent's messages and prices, so a few dozen passes suffice where a bound from
// scratch takes hundreds. These states take most of the memory of branch and bound: beyond 256 MB, subproblems keep
// only their parent's prices, which take more passes to find than the messages that belong to them. With half of the
// values a pass takes a quarter of the time; so a subproblem that has lost that many is restricted to the remaining
// values, and its own parts start from there. Passes end when the bound hardly moves (by less than 4 % of the gap in
// ten passes), since two halves then gain more than more passes.

namespace shardplan {
namespace {

constexpr int kPasses = 60;                                     // per subproblem
constexpr int kPassesPerLook = 10;                              // between attempts to remove values
constexpr double kWorthGoingOn = 0.04;                          // relative gain of the gap from check to check
constexpr std::size_t kMostPartEntries = std::size_t{8} << 20;  // of a smaller core
constexpr double kLeastSpread = 1e-6;  // of the gap: smaller differences of prices are due to rounding

/// The size of a subproblem in doubles; its parts share it.
std::size_t stored_size(const BranchAndBound::Subproblem& subproblem) {
  if (!subproblem.state) return 0;
  return (subproblem.state->messages.size() + (subproblem.part ? subproblem.part->core.sweep_work : 0)) / 2;
}

}  // namespace

BranchAndBound::BranchAndBound(const CoreProblem& core, const DualBound& root, std::size_t most_stored)
    : core_(&core), root_(root.state()), most_stored_(most_stored), best_cost_(core.big_m) {
  insert({root_.bound, 0, nullptr, nullptr, {}, root.alive(), 0});
}

void BranchAndBound::let_go_of_state(Subproblem& subproblem) const {
  subproblem.alive = alive_in_whole(subproblem);
  subproblem.prices.clear();
  for (std::uint32_t time = 0; time < subproblem.state->prices.size(); ++time) {
    const double price = subproblem.state->prices[time];
    if (price > 0) subproblem.prices.emplace_back(time, price);
  }
  subproblem.part.reset();
  subproblem.state.reset();
}

void BranchAndBound::insert(Subproblem subproblem) {
  if (subproblem.state) {
    if (stored_ >= most_stored_) {
      let_go_of_state(subproblem);
    } else {
      stored_ += stored_size(subproblem);
    }
  }
  const double bound = subproblem.bound;
  subproblem.number = num_inserted_++;
  open_.emplace(std::pair(bound, subproblem.number), std::move(subproblem));
}

void BranchAndBound::set_best_cost(double cost) {
  best_cost_ = std::min(best_cost_, cost);
  while (!open_.empty() && std::prev(open_.end())->first.first > best_cost_ - 1) {
    stored_ -= stored_size(std::prev(open_.end())->second);
    open_.erase(std::prev(open_.end()));
  }
}

std::vector<BranchAndBound::Subproblem> BranchAndBound::take(std::size_t count) {
  std::vector<Subproblem> batch;
  // When very many are open, the deepest of the promising ones come first: pure best-first search would fill the
  // memory.
  const bool is_crowded = open_.size() > 20000;
  while (!open_.empty() && batch.size() < count) {
    auto at = open_.begin();
    if (is_crowded) {
      auto candidate = open_.begin();
      for (int i = 0; i < 256 && candidate != open_.end(); ++i, ++candidate) {
        if (candidate->second.depth > at->second.depth) at = candidate;
      }
    }
    stored_ -= stored_size(at->second);
    batch.push_back(std::move(at->second));
    open_.erase(at);
    ++num_processed_;
  }
  return batch;
}

std::vector<const BranchAndBound::Subproblem*> BranchAndBound::most_promising(std::size_t count) const {
  std::vector<const Subproblem*> result;
  for (auto at = open_.begin(); at != open_.end() && result.size() < count; ++at) result.push_back(&at->second);
  return result;
}

std::shared_ptr<const DualBound::State> BranchAndBound::start_of(const Subproblem& subproblem) const {
  if (subproblem.state) return subproblem.state;
  auto state = std::make_shared<DualBound::State>(root_);
  if (subproblem.prices.empty()) return state;
  std::fill(state->prices.begin(), state->prices.end(), 0.0);
  for (const auto& [time, price] : subproblem.prices) state->prices[time] = price;
  return state;
}

std::vector<std::uint8_t> BranchAndBound::alive_in_whole(const Subproblem& subproblem) const {
  if (!subproblem.part) return subproblem.alive;
  const RestrictedCore& part = *subproblem.part;
  std::vector<std::uint8_t> alive(core_->costs.size(), 0);
  for (std::size_t node = 0; node < core_->num_nodes(); ++node) {
    for (std::uint32_t at = part.core.first_value[node]; at < part.core.first_value[node + 1]; ++at) {
      alive[core_->first_value[node] + part.values[at]] = subproblem.alive[at];
    }
  }
  return alive;
}

void BranchAndBound::make_smaller(Subproblem& subproblem, WorkMeter& meter) const {
  const CoreProblem& core = core_of(subproblem);
  const auto left = std::count(subproblem.alive.begin(), subproblem.alive.end(), 1);
  if (static_cast<double>(left) > kWorthRestricting * static_cast<double>(subproblem.alive.size())) return;
  meter.spend(kPassesToRestrict * 2 * core.sweep_work);
  std::optional<RestrictedCore> part = restrict_core(core, subproblem.alive, kMostPartEntries);
  if (!part) return;
  subproblem.state =
      std::make_shared<const DualBound::State>(DualBound::restricted_state(core, *subproblem.state, *part));
  if (subproblem.part) part->count_values_as(*subproblem.part);
  subproblem.alive.assign(part->core.costs.size(), 1);
  subproblem.part = std::make_shared<const RestrictedCore>(*std::move(part));
}

BranchAndBound::Outcome BranchAndBound::process(Subproblem subproblem, DualBound& whole_dual, double best_cost,
                                                WorkMeter& meter) const {
  Outcome outcome;
  outcome.cost = best_cost;
  if (!propagate_memory(core_of(subproblem), subproblem.alive)) return outcome;
  subproblem.state = start_of(subproblem);
  make_smaller(subproblem, meter);
  const CoreProblem& core = core_of(subproblem);
  std::optional<DualBound> own;
  if (subproblem.part) own.emplace(core);
  DualBound& dual = own ? *own : whole_dual;
  dual.restore(*subproblem.state, subproblem.alive);
  dual.raise_bound(subproblem.bound);
  dual.restart_steps(0.5);
  const DualBound::Steps steps{DualBound::Subgradient::kDecoded, 0.7};
  double checkpoint = subproblem.bound;
  const auto consider = [&](const CoreChoice& choice) {
    const CoreEvaluation result = evaluate(core, choice);
    if (result.excess > 0 || result.cost >= outcome.cost || result.cost >= core.big_m) return;
    outcome.cost = result.cost;
    outcome.choice = subproblem.part ? subproblem.part->expand(choice) : choice;
  };
  for (int pass = 1; pass <= kPasses; ++pass) {
    // If no cost is known, steps aim slightly above the bound.
    const double target = outcome.cost < core.big_m ? outcome.cost : dual.best_bound() + 1 + 0.01 * dual.best_bound();
    const bool is_empty = dual.iterate(target, steps) == kInfinity;
    const bool is_cut_short = !meter.spend(dual.work_per_pass());
    if (is_empty || dual.best_bound() > outcome.cost - 1) {
      outcome.parts.clear();
      return outcome;
    }
    if (is_cut_short) {
      subproblem.bound = std::max(subproblem.bound, dual.best_bound());
      outcome.parts.push_back(std::move(subproblem));
      return outcome;
    }
    if (pass % kPassesPerLook != 0) continue;
    consider(dual.decoded());
    std::vector<std::uint8_t> alive = dual.alive();
    dual.pass();
    if (outcome.cost < core.big_m && dual.fix_by_reduced_cost(outcome.cost, alive)) {
      if (!propagate_memory(core, alive)) return outcome;
      dual.set_alive(std::move(alive));
    }
    // Continuing pays only while the bound moves.
    const double gain = dual.best_bound() - checkpoint;
    if (pass > kPassesPerLook && gain < kWorthGoingOn * (outcome.cost - dual.best_bound())) break;
    checkpoint = dual.best_bound();
  }
  MoveState state(core, dual.decoded());
  WorkMeter part = meter.part(dual.work_per_pass() * 20);
  if (state.repair(part)) {
    state.descend(part);
    if (state.is_feasible()) consider(state.choice());
  }
  meter.merge(part);
  subproblem.bound = dual.best_bound();
  subproblem.alive = dual.alive();
  dual.set_prices(std::vector(dual.best_prices()));
  dual.pass();
  outcome.parts = split(subproblem, dual, outcome.cost);
  if (outcome.parts.empty()) consider(dual.decoded());  // one value each, and they satisfy the limits
  return outcome;
}

std::vector<BranchAndBound::Subproblem> BranchAndBound::split(const Subproblem& subproblem, const DualBound& dual,
                                                              double best_cost) const {
  const CoreProblem& core = core_of(subproblem);
  const double gap = best_cost < core.big_m ? best_cost - dual.best_bound() : std::max(0.01 * dual.best_bound(), 1.0);
  std::size_t chosen = core.num_nodes();
  double best_spread = kLeastSpread * gap;
  double threshold = 0;
  std::size_t second_node = core.num_nodes();
  double second_excess = kInfinity;
  std::uint32_t second_value = 0;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    double least = kInfinity;
    double most = -kInfinity;
    std::uint32_t best = 0;
    double lowest = kInfinity;
    double next = kInfinity;
    for (std::uint32_t value = 0; value < core.num_values(node); ++value) {
      if (!dual.is_alive(node, value)) continue;
      const double excess = dual.reduced_cost(node, value);
      if (excess < lowest) {
        next = lowest;
        lowest = excess;
        best = value;
      } else {
        next = std::min(next, excess);
      }
      if (excess > 0.3 * gap) continue;
      least = std::min(least, dual.price_of_bytes(node, value));
      most = std::max(most, dual.price_of_bytes(node, value));
    }
    if (most - least > best_spread) {
      best_spread = most - least;
      threshold = (most + least) / 2;
      chosen = node;
    }
    if (next < second_excess) {
      second_excess = next;
      second_node = node;
      second_value = best;
    }
  }
  if (second_node == core.num_nodes()) return {};  // every node has one value
  const bool by_price = chosen != core.num_nodes();
  const std::size_t node = by_price ? chosen : second_node;
  const auto state = std::make_shared<const DualBound::State>(dual.state());
  std::vector<Subproblem> parts(2);
  for (int part = 0; part < 2; ++part) {
    parts[static_cast<std::size_t>(part)] = {
        subproblem.bound, subproblem.depth + 1, subproblem.part, state, {}, subproblem.alive, 0};
    for (std::uint32_t value = 0; value < core.num_values(node); ++value) {
      const bool is_first = by_price ? dual.price_of_bytes(node, value) <= threshold : value == second_value;
      if (is_first != (part == 0)) parts[static_cast<std::size_t>(part)].alive[core.first_value[node] + value] = 0;
    }
  }
  return parts;
}

void BranchAndBound::put(Outcome outcome) {
  if (outcome.choice) set_best_cost(outcome.cost);
  for (Subproblem& part : outcome.parts) {
    if (part.bound <= best_cost_ - 1) insert(std::move(part));
  }
}

}  // namespace shardplan
