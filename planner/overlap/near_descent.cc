#include "planner/overlap/near_descent.h"

#include <cstddef>
#include <utility>

namespace shardplan {
namespace {

/// Maximal number of moves to a shorter plan.
constexpr int kMostTurns = 12;

}  // namespace

void NearDescent::from(Plan start, const std::function<bool()>& is_done) {
  Plan center = std::move(start);
  for (int turn = 0; turn < kMostTurns && !is_done(); ++turn) {
    std::optional<Plan> next = shorter_than(center, input_.near.near(center));
    if (!next) next = shorter_than(center, input_.near.crossed(center, input_.known()));
    if (!next) return;
    center = *std::move(next);
  }
}

/// The first of these plans that is shorter, or the shortest of them if none was compared.
std::optional<Plan> NearDescent::shorter_than(const Plan& center, const NearSearch::Found& found) {
  std::optional<Plan> shorter;
  const std::size_t together = found.is_compared ? 1 : found.choices.size();
  for (std::size_t i = 0; i < found.choices.size() && !shorter && !input_.is_over();) {
    std::vector<Decisions> decisions;
    for (; decisions.size() < together; ++i) decisions.push_back(input_.model.decisions_of(found.choices[i]));
    for (Plan& plan : input_.incumbent.look_at(decisions, std::nullopt)) {
      if (!plan.fits()) continue;
      input_.incumbent.take(plan);
      const Picoseconds than = shorter ? shorter->time.step() : center.time.step();
      if (shorter ? plan.time.step() < than : IncumbentPlan::is_shorter(plan, than)) shorter = std::move(plan);
    }
  }
  return shorter;
}

}  // namespace shardplan
