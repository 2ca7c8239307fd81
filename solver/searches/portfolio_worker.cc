#include "solver/searches/portfolio_worker.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "solver/heuristics/dive.h"
#include "solver/searches/promising_part.h"

// Each engine improves the choice or the bound in its own way; none is best on all problems, or at all times on one
// problem:
//
//   bound    message passing with prices raises the bound; the choices that it decodes lie near the optimum, and
//            single-node repairs make them feasible
//   fresh    the path of prices depends on the target from the first step on: once a good choice is known, a bound from
//            nothing passes by where the old one stands still
//   dive     rounds the bound to a choice by removing the least likely values, a share at a time; where branch and bound runs,
//            from its most promising subproblems, whose prices and choices differ
//   part     the values that the bound leaves cheap: so few that all engines, above all branch and bound, get far
//   trees    many small steps that no sequence of single moves could make; annealed, so that they leave a valley
//   blocks   a few large steps: a block of up to some 260 nodes is bounded and dived into as a problem of its own
//   exact    branch and bound, where a pass is so cheap that thousands of subproblems are affordable
//
// All constants are the outcome of runs on the contest's problems and on models; none is critical within a factor of
// two.

namespace shardplan {
namespace {

/// No one setting suits all problems: threads differ, and each changes over when its steps have become short.
constexpr DualBound::Steps kSteps[] = {{DualBound::Subgradient::kDecoded, 0.8},
                                       {DualBound::Subgradient::kMinMarginals, 0.8, 20},
                                       {DualBound::Subgradient::kDecoded, 0.5, 20}};

constexpr double kFewestPerNode = 1.5, kMostPerNode = 7.5;  // values of a promising part; mostly few

const DualBound::Steps& steps_of(std::size_t setting) { return kSteps[setting % std::size(kSteps)]; }

}  // namespace

double PortfolioKnowledge::target() const {
  const double cost = best_cost();
  if (cost < kInfinity) return std::min(cost, bound > 0 ? 20 * bound + 1 : cost);
  return bound > -kInfinity ? bound + 0.05 * std::abs(bound) + 1 : kInfinity;
}

PortfolioWorker::PortfolioWorker(const CoreProblem& core, const Deadline& deadline, int thread)
    : core_(&core),
      deadline_(&deadline),
      dual_(core),
      state_(core, fewest_bytes_choice(core)),
      trees_(core, std::vector<double>(core.limits.size(), 0)),
      blocks_(core),
      steps_(steps_of(static_cast<std::size_t>(thread))),
      setting_(static_cast<std::size_t>(thread)),
      fresh_setting_(setting_) {}

void PortfolioWorker::offer(Engine by) {
  if (!state_.is_feasible() || state_.cost() >= found_.cost) return;
  found_ = {state_.choice(), state_.cost(), by};
}

void PortfolioWorker::improve(std::span<const CoreChoice> choices, std::uint64_t work) {
  WorkMeter meter(*deadline_, work);
  for (const CoreChoice& choice : choices) {
    state_.set(choice);
    if (!state_.repair(meter)) continue;
    state_.descend(meter);
    offer(Engine::kBound);
  }
  used_ += meter.used();
}

void PortfolioWorker::run_bound(const PortfolioKnowledge& known, const DualBound::Steps& steps, std::uint64_t work) {
  WorkMeter meter(*deadline_, work);
  dual_.suit_precision(known.best_cost(), std::max(known.bound, dual_.best_bound()));
  double target = known.target();
  if (target == kInfinity) {
    dual_.pass();
    meter.spend(dual_.work_per_pass());
    PortfolioKnowledge own;
    own.bound = dual_.best_bound();
    target = own.target();
  }
  while (!meter.is_spent()) {
    meter.spend(dual_.work_per_pass());
    if (dual_.iterate(target, steps) == kInfinity) break;
    if (known.best.choice && dual_.best_bound() > known.best.cost - 1) break;
    if (!known.best.choice && dual_.best_bound() > core_->big_m - 1) break;
    if (dual_.num_passes() < next_decode_) continue;
    next_decode_ = dual_.num_passes() + std::clamp<std::uint64_t>(dual_.num_passes() / 8, 4, 20);
    state_.set(dual_.decoded());
    WorkMeter part = meter.part(dual_.work_per_pass() * 4);
    if (state_.repair(part)) {
      state_.descend(part);
      offer(Engine::kBound);
    }
    meter.merge(part);
  }
  used_ += meter.used();
}

void PortfolioWorker::run_fresh_bound(const PortfolioKnowledge& known, std::uint64_t work) {
  if (!fresh_ || fresh_->has_converged()) {
    fresh_.emplace(*core_);
    ++fresh_setting_;
  }
  const DualBound::Steps& steps = steps_of(fresh_setting_);
  std::swap(*fresh_, dual_);
  std::swap(next_decode_, next_fresh_decode_);
  run_bound(known, steps, work);
  std::swap(next_decode_, next_fresh_decode_);
  std::swap(*fresh_, dual_);
  if (fresh_->best_bound() <= dual_.best_bound()) return;
  dual_ = *fresh_;
  steps_ = steps;
}

void PortfolioWorker::run_dive(const PortfolioKnowledge& known, Random& random, std::uint64_t work) {
  DualBound start = dual_;
  start.raise_prices(known.prices, known.priced_bound);
  dive_from(start, nullptr, known, random, work);
}

void PortfolioWorker::run_dive(const BranchAndBound& exact, const BranchAndBound::Subproblem& subproblem,
                               const PortfolioKnowledge& known, Random& random, std::uint64_t work) {
  const RestrictedCore* const part = subproblem.part.get();
  DualBound start(part != nullptr ? part->core : *core_);
  start.restore(*exact.start_of(subproblem), subproblem.alive);
  dive_from(start, part, known, random, work);
}

void PortfolioWorker::dive_from(DualBound& start, const RestrictedCore* part, const PortfolioKnowledge& known,
                                Random& random, std::uint64_t work) {
  start.restart_steps(0.1 + 0.3 * random.unit());
  WorkMeter meter(*deadline_, work);
  const double rate = 0.08 + 0.25 * random.unit();
  const int passes = 2 + static_cast<int>(random.below(5));
  const CoreProblem& core = part != nullptr ? part->core : *core_;
  if (const auto choice = dive(core, start, known.target(), rate, passes, steps_, meter)) {
    state_.set(part != nullptr ? part->expand(*choice) : *choice);
    if (part != nullptr) state_.descend(meter);
    offer(Engine::kDive);
  }
  used_ += meter.used();
}

void PortfolioWorker::run_part(const PortfolioKnowledge& known, const CoreSearchOptions& options, CoreSearch search,
                               Random& random, std::uint64_t work) {
  CoreSearchOptions own = options;
  own.seed = random.next();
  const double share = random.unit();
  const double values_per_node = kFewestPerNode + (kMostPerNode - kFewestPerNode) * share * share;
  const auto part = PromisingPart::of(*core_, dual_, *known.best.choice, values_per_node, own, work);
  if (!part) {
    ++used_;
    return;
  }
  const CoreSearchResult found = part->search(*deadline_, search);
  used_ += found.work;
  if (!found.choice) return;
  state_.set(*found.choice);
  offer(Engine::kPart);
}

void PortfolioWorker::run_neighbourhood(Engine engine, const PortfolioKnowledge& known, Random& random,
                                        std::uint64_t work) {
  WorkMeter meter(*deadline_, work);
  if (!known.best.choice) {
    // Nothing to improve yet: repair a random start.
    CoreChoice choice = fewest_bytes_choice(*core_);
    for (std::size_t node = 0; node < choice.size(); ++node) {
      if (random.below(8) == 0) choice[node] = static_cast<std::uint32_t>(random.below(core_->num_values(node)));
    }
    state_.set(choice);
    if (state_.repair(meter)) state_.descend(meter);
    offer(engine);
    used_ += meter.used() + 1000;
    return;
  }
  state_.set(*known.best.choice);
  if (engine == Engine::kTrees) {
    run_trees(known, random, meter, work);
  } else {
    while (!meter.is_spent()) {
      const std::size_t size = 8 + random.below(std::size_t{1} << (4 + random.below(5)));
      blocks_.move(state_, random, size, known.prices, meter);
    }
    offer(Engine::kBlocks);
  }
  used_ += meter.used();
}

// Annealed: a move may cost a little more, ever less so.
void PortfolioWorker::run_trees(const PortfolioKnowledge& known, Random& random, WorkMeter& meter, std::uint64_t work) {
  trees_.set_prices(known.prices);
  const double best = known.best.cost;
  const double gap = std::max(best - std::max(known.bound, 0.0), 0.0);
  constexpr double kHeat[] = {0, 3e-4, 3e-3, 3e-2};
  const double hottest = kHeat[random.below(4)] * gap;
  const std::size_t largest = std::size_t{8} << random.below(6);
  constexpr double kShares[] = {0, 0.3, 0.7, 1, 1.5};
  while (!meter.is_spent()) {
    const double left = 1 - static_cast<double>(meter.used()) / static_cast<double>(work);
    const double heat = left < 0.2 ? 0 : hottest * left * left;
    const double allowance = std::max(0.0, std::min(heat * random.unit(), best + 20 * heat - state_.cost()));
    const double share = kShares[random.below(5)];
    trees_.move(state_, random, 1 + random.below(largest), share, allowance, meter);
    if (state_.cost() < found_.cost && state_.cost() < best) offer(Engine::kTrees);
  }
}

void PortfolioWorker::run_exact(SubproblemsAhead& ahead, const PortfolioKnowledge& known,
                                std::vector<BranchAndBound::Subproblem> batch) {
  double best = known.best_cost(*core_);
  if (!part_dual_) part_dual_.emplace(*core_);
  for (BranchAndBound::Subproblem& item : batch) {
    SubproblemsAhead::Processed processed = ahead.process(std::move(item), best, *part_dual_);
    used_ += processed.work;
    outcomes_.push_back(std::move(processed.outcome));
    const BranchAndBound::Outcome& outcome = outcomes_.back();
    best = std::min(best, outcome.cost);
    if (outcome.choice && outcome.cost < found_.cost) found_ = {outcome.choice, outcome.cost, Engine::kExact};
  }
}

void PortfolioWorker::follow_prices(const PortfolioKnowledge& known) {
  const double near = 0.05 * std::abs(known.best.cost - known.priced_bound);
  if (dual_.best_bound() < known.priced_bound && !(dual_.best_bound() > known.priced_bound - near)) {
    dual_.raise_prices(known.prices, known.priced_bound);
  }
  if (!dual_.has_converged()) return;
  steps_ = steps_of(++setting_);
  dual_.raise_prices(known.prices, known.priced_bound);
  dual_.restart_steps(0.3);
}

}  // namespace shardplan
