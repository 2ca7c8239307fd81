#include "planner/overlap/near_search.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/side_by_side.h"
#include "planner/overlap/guessed_problem.h"
#include "planner/overlap/near_choices.h"
#include "planner/problem/plan_choice.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

constexpr Guess kHalfHidden{25, 50, 50};
/// In thousandths of the plan's step: the largest additional cost by the estimate, and the least change.
constexpr Picoseconds kMostMore = 30, kLeastMoved = 5;
constexpr std::uint64_t kNearWork = 50'000'000;
/// At most this many are tried, fewer for long programs.
constexpr std::size_t kMostNear = 60;
constexpr std::size_t kInstructionsTried = 150'000;
constexpr std::size_t kTriedAtOnce = 2;
/// If only few can be tried, at most this many of them have their largest change at the same node or edge.
constexpr std::size_t kFewNear = 16, kMostOfPart = 2;
/// The candidates with the shortest orders by the plan's rule are refined, as long as that order exceeds the plan's
/// step by at most this.
constexpr std::size_t kTriedOfRefined = 4, kMostRefined = 8;
constexpr Picoseconds kPercentLonger = 5;
/// For short programs all candidates are worth scheduling, for longer ones fewer.
constexpr std::size_t kShortProgram = 500, kInstructionsOrdered = 8'000;

/// The choices that end before `too_late`, earliest first.
std::vector<Choice> shortest(const std::vector<Choice>& choices, std::span<const std::optional<Picoseconds>> ends,
                             Picoseconds too_late) {
  std::vector<std::pair<Picoseconds, std::size_t>> in_turn;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] && *ends[i] < too_late) in_turn.emplace_back(*ends[i], i);
  }
  std::sort(in_turn.begin(), in_turn.end());
  std::vector<Choice> result;
  for (const auto& [end, i] : in_turn) result.push_back(choices[i]);
  return result;
}

}  // namespace

NearSearch::Found NearSearch::worth_ordering(const Plan& plan) {
  const std::size_t instructions = plan.program.instructions.size();
  const std::optional<Choice> center = find_choice(model_.versions, model_.problem, plan.strategies, plan.versions);
  if (!center || instructions == 0) return {};
  const std::size_t most = std::clamp<std::size_t>(kInstructionsTried / instructions, 1, kMostNear);
  std::vector<Choice> near = choices_near(*center, plan.time.step(), most);
  tried_ += static_cast<std::int64_t>(near.size());
  if (instructions >= kShortProgram) return {shorter_by_rule(plan, *center, std::move(near)), true};
  near.resize(std::min(near.size(), kInstructionsOrdered / instructions));
  return {std::move(near), false};
}

/// At most `most` choices, of those that were not refined before.
std::vector<Choice> NearSearch::choices_near(const Choice& center, Picoseconds step, std::size_t most) const {
  const bool is_varied = most < kFewNear;
  NearLimits limits{step / 1000 * kMostMore, step / 1000 * kLeastMoved, is_varied ? kMostNear : most, kNearWork};
  limits.most_of_part = is_varied ? kMostOfPart : 0;
  const StrategyProblem guessed = guessed_problem(model_.problem, model_.graph, model_.versions, kHalfHidden);
  std::optional<TiedProblem> tied;
  if (model_.ties) tied = tied_problem(guessed, *model_.ties);
  std::vector<Choice> choices;
  const Choice of_searched = tied ? tied->tied(center) : center;
  if (tied && tied->expanded(of_searched) != center) return {};  // its layers differ
  for (NearChoice& near : near_choices(tied ? tied->problem : guessed, of_searched, limits)) {
    Choice choice = tied ? tied->expanded(near.choice) : std::move(near.choice);
    if (std::find(refined_.begin(), refined_.end(), choice) == refined_.end()) choices.push_back(std::move(choice));
  }
  return is_varied ? some_of(choices, most) : choices;
}

/// `most` choices: half of them the cheapest by another estimate, the others in the given order.
std::vector<Choice> NearSearch::some_of(const std::vector<Choice>& choices, std::size_t most) const {
  std::vector<std::optional<Picoseconds>> steps;
  for (const Choice& choice : choices) {
    steps.push_back(guessed_step(model_.problem, model_.graph, model_.versions, kMostlyHidden, choice));
  }
  std::vector<Choice> some = shortest(choices, steps, kForbidden);
  some.resize(std::min(some.size(), (most + 1) / 2));
  for (const Choice& choice : choices) {
    if (some.size() == most) break;
    if (std::find(some.begin(), some.end(), choice) == some.end()) some.push_back(choice);
  }
  return some;
}

/// The choices whose refined orders by the plan's rule are shorter than the plan, shortest first.
std::vector<Choice> NearSearch::shorter_by_rule(const Plan& plan, const Choice& center, std::vector<Choice> choices) {
  choices.insert(choices.begin(), center);
  const std::vector<std::optional<Picoseconds>> rough = ends_by_rule(plan, choices, false);
  if (!rough.front()) return {};
  const std::size_t most = std::clamp<std::size_t>(choices.size() / kTriedOfRefined, 1, kMostRefined);
  choices.erase(choices.begin());
  choices = shortest(choices, std::span(rough).subspan(1), *rough.front() / 100 * (100 + kPercentLonger));
  if (choices.size() > most) choices.resize(most);
  refined_.insert(refined_.end(), choices.begin(), choices.end());
  return shortest(choices, ends_by_rule(plan, choices, true), plan.time.step());
}

/// By choice; for as many as time permits.
std::vector<std::optional<Picoseconds>> NearSearch::ends_by_rule(const Plan& plan, const std::vector<Choice>& choices,
                                                                 bool is_refined) const {
  std::vector<std::optional<Picoseconds>> ends(choices.size());
  side_by_side(kTriedAtOnce, choices.size(), [&](std::size_t, std::size_t i) {
    if (model_.deadline.is_over()) return;
    const Decisions decisions = decisions_of(model_.graph, model_.versions, model_.problem, choices[i], model_.mesh);
    ends[i] = model_.step_by_rule(decisions, plan, is_refined);
  });
  return ends;
}

}  // namespace shardplan
