#include "planner/overlap/incumbent_plan.h"

#include <algorithm>
#include <utility>

#include "base/side_by_side.h"

namespace shardplan {
namespace {

constexpr std::size_t kOrderedAtOnce = 8;  // threads
constexpr Picoseconds kThousandthsToGain = 5;
constexpr Bytes kLeanerPercent = 90;

}  // namespace

bool IncumbentPlan::is_shorter(const Plan& plan, Picoseconds than) {
  return plan.time.step() < than / 1000 * (1000 - kThousandthsToGain);
}

Picoseconds IncumbentPlan::hardly_longer() const { return step() / 1000 * (1000 + kThousandthsToGain); }

bool IncumbentPlan::is_leaner(const Plan& trial, Picoseconds longest) const {
  return trial.time.step() <= longest && trial.memory.peak <= plan_.memory.peak / 100 * kLeanerPercent;
}

void IncumbentPlan::try_beside(Decisions decisions) {
  finish();
  ++ordered_;
  beside_ = begin_beside([this, decisions = std::move(decisions), step_to_beat = step()] {
    return scheduled_(decisions, {step_to_beat});
  });
}

void IncumbentPlan::finish() {
  if (beside_.valid()) take(beside_.get());
}

void IncumbentPlan::try_all(const std::vector<Decisions>& decisions, std::optional<Picoseconds> step_to_beat) {
  for (std::optional<Plan>& trial : candidates(decisions, step_to_beat)) {
    if (trial) take(*std::move(trial));
  }
}

std::vector<Plan> IncumbentPlan::look_at(const std::vector<Decisions>& decisions,
                                         std::optional<Picoseconds> step_to_beat) {
  std::vector<Plan> plans;
  for (std::optional<Plan>& trial : candidates(decisions, step_to_beat)) {
    if (trial) plans.push_back(*std::move(trial));
  }
  return plans;
}

void IncumbentPlan::try_leaner(const std::vector<Decisions>& decisions) {
  const Picoseconds longest = hardly_longer();
  for (std::optional<Plan>& trial : candidates(decisions, longest)) {
    if (!trial || !is_leaner(*trial, longest)) continue;
    before_.reset();
    replace(*std::move(trial));
  }
}

void IncumbentPlan::refine_order() {
  std::vector<Decisions> decisions = {{plan_.strategies, plan_.versions}};
  if (before_) decisions.push_back(*std::move(before_));
  for (std::optional<Plan>& trial : scheduled(decisions, {.is_final = true})) {
    if (!trial) continue;
    if (is_leaner(*trial, hardly_longer())) {
      replace(*std::move(trial));
    } else {
      take(*std::move(trial));
    }
  }
}

std::vector<std::optional<Plan>> IncumbentPlan::scheduled(const std::vector<Decisions>& decisions,
                                                          const OrderEffort& effort) const {
  std::vector<std::optional<Plan>> trials(decisions.size());
  side_by_side(num_processors(kOrderedAtOnce), decisions.size(), [&](std::size_t, std::size_t i) {
    if (!deadline_.is_over()) trials[i] = scheduled_(decisions[i], effort);
  });
  return trials;
}

std::vector<std::optional<Plan>> IncumbentPlan::candidates(const std::vector<Decisions>& decisions,
                                                           std::optional<Picoseconds> step_to_beat) {
  finish();
  std::vector<std::optional<Plan>> trials = scheduled(decisions, {step_to_beat});
  for (const std::optional<Plan>& trial : trials) {
    if (!trial) continue;
    ++ordered_;
    if (trial->fits()) known_.push_back({trial->time.step(), {trial->strategies, trial->versions}});
  }
  return trials;
}

void IncumbentPlan::take(Plan trial) {
  const bool holds_more = trial.memory.peak > plan_.memory.peak;
  if (!is_better(trial, plan_) || (holds_more && !is_shorter(trial, step()))) return;
  before_.reset();
  if (!is_shorter(trial, step())) before_ = Decisions{plan_.strategies, plan_.versions};
  replace(std::move(trial));
}

void IncumbentPlan::replace(Plan trial) {
  plan_ = std::move(trial);
  ++taken_;
}

}  // namespace shardplan
