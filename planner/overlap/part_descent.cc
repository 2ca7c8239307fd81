#include "planner/overlap/part_descent.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/overlap/blended_problem.h"
#include "planner/overlap/hiding_windows.h"
#include "planner/overlap/plan_pool.h"

namespace shardplan {
namespace {

/// A plan is looked around by these estimates in turn: what its windows could hide, blended with this share of the
/// bound.
struct Estimate {
  Hiding hiding;
  std::int64_t percent_of_bound = 0;
};
constexpr Estimate kEstimates[] = {{{15, 50}, 0}, {{15, 50}, 75}, {{30, 100}, 0}, {{30, 100}, 75}};
/// Of choices that were compared by the plan's rule, so many are scheduled.
constexpr std::size_t kMostComparedOrdered = 4;

}  // namespace

bool PartDescent::is_new(const Choice& choice) const {
  return std::find(seen_.begin(), seen_.end(), choice) == seen_.end();
}

void PartDescent::from(Plan start, int turns) {
  PlanPool pool(std::size(kEstimates));
  Picoseconds shortest = start.time.step();
  const auto add = [&](Plan plan) {
    std::optional<Choice> choice = input_.model.choice_of(plan);
    if (!choice || !is_new(*choice)) return;
    seen_.push_back(*choice);
    shortest = std::min(shortest, plan.time.step());
    pool.add(std::move(plan), *std::move(choice));
  };
  add(std::move(start));
  for (int left = turns; left > 0 && !input_.is_done(); --left) {
    PlanPool::Member* const member = pool.next();
    if (member == nullptr) return;
    const Picoseconds before = shortest;
    for (Plan& plan : look(member->plan, member->choice, member->looked++)) {
      if (!plan.fits()) continue;
      input_.incumbent.take(plan);
      add(std::move(plan));
    }
    if (shortest < before / 1000 * 999) left = turns + 1;
  }
}

/// The plans around this one.
std::vector<Plan> PartDescent::look(const Plan& plan, const Choice& choice, std::size_t estimate) {
  ++looks_;
  HidingWindows windows(input_.model);
  windows.add(plan.program);
  const auto& [hiding, percent] = kEstimates[estimate];
  StrategyProblem estimated = windows.estimated(hiding);
  if (percent > 0) estimated = blended(std::move(estimated), input_.of_bound, percent);
  std::vector<Choice> choices = search_.around(choice, estimated);
  std::erase_if(choices, [&](const Choice& other) { return !is_new(other); });
  NearSearch::Found found = input_.near.compared(plan, std::move(choices));
  if (found.is_compared && found.choices.size() > kMostComparedOrdered) found.choices.resize(kMostComparedOrdered);
  std::vector<Decisions> decisions;
  for (const Choice& other : found.choices) decisions.push_back(input_.model.decisions_of(other));
  return input_.incumbent.look_at(decisions, input_.incumbent.step());
}

}  // namespace shardplan
