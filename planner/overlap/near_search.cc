#include "planner/overlap/near_search.h"

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "base/side_by_side.h"
#include "planner/overlap/crossed_choices.h"
#include "planner/overlap/near_choices.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

/// By the second guess, which counts buckets, unless the program is short: mnist-train, where memory binds, ended up to
/// 17 % longer by it.
constexpr Guess kHalfHidden{25, 50, 50}, kHalfHiddenInBuckets{25, 50, 50, kStartUpInBucket};
/// In thousandths of the plan's step: the largest additional cost by the estimate, and the least change.
constexpr Picoseconds kMostMore = 30, kLeastMoved = 5;
constexpr std::uint64_t kNearWork = 50'000'000;
/// At most this many are tried, fewer for long programs.
constexpr std::size_t kMostNear = 60;
constexpr std::size_t kInstructionsTried = 150'000;
constexpr std::size_t kTriedAtOnce = 8;  // threads
/// If only few can be tried, at most this many of them have their largest change at the same node or edge.
constexpr std::size_t kFewNear = 16, kMostOfPart = 2;
/// The candidates with the shortest orders by the plan's rule are refined, as long as that order exceeds the plan's
/// step by at most this.
constexpr std::size_t kTriedOfRefined = 4, kMostRefined = 8;
constexpr Picoseconds kPercentLonger = 5;
/// At most this many components of each other choice are crossed; of long programs few of the results are tried and
/// refined.
constexpr std::size_t kMostParts = 32, kInstructionsCrossed = 250'000;
constexpr std::size_t kInstructionsRefined = 50'000, kMostCrossedRefined = 16;
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

/// One of `a`, one of `b`, and so on, none twice.
std::vector<Choice> in_turn(const std::vector<Choice>& a, const std::vector<Choice>& b) {
  std::vector<Choice> result;
  const auto add = [&](const std::vector<Choice>& of, std::size_t i) {
    if (i < of.size() && std::find(result.begin(), result.end(), of[i]) == result.end()) result.push_back(of[i]);
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    add(a, i);
    add(b, i);
  }
  return result;
}

}  // namespace

NearSearch::Found NearSearch::near(const Plan& plan) {
  const std::size_t instructions = plan.program.instructions.size();
  const std::optional<Choice> center = input_.model.choice_of(plan);
  if (!center || instructions == 0) return {};
  const std::size_t most = std::clamp<std::size_t>(kInstructionsTried / instructions, 1, kMostNear);
  const Guess& guess = instructions < kShortProgram ? kHalfHidden : kHalfHiddenInBuckets;
  std::vector<Choice> near = choices_near(guess, *center, plan.time.step(), most);
  const std::size_t tried = near.size();
  tried_ += static_cast<std::int64_t>(tried);
  if (instructions < kShortProgram) {
    near.resize(std::min(near.size(), kInstructionsOrdered / instructions));
    return {std::move(near), false};
  }
  near = short_by_rule(plan, *center, std::move(near));
  return {shorter_refined(plan, std::move(near), std::clamp<std::size_t>(tried / kTriedOfRefined, 1, kMostRefined)),
          true};
}

NearSearch::Found NearSearch::crossed(const Plan& plan, const std::vector<Choice>& others) {
  const std::size_t instructions = plan.program.instructions.size();
  const std::optional<Choice> center = input_.model.choice_of(plan);
  if (!center || instructions == 0) return {};
  return lightest_compared(plan, *center, choices_between(*center, others));
}

NearSearch::Found NearSearch::compared(const Plan& plan, std::vector<Choice> choices) {
  const std::size_t instructions = plan.program.instructions.size();
  const std::optional<Choice> center = input_.model.choice_of(plan);
  if (!center || instructions == 0) return {};
  std::erase_if(choices, [&](const Choice& choice) { return is_refined(choice); });
  if (instructions >= kShortProgram) return lightest_compared(plan, *center, std::move(choices));
  choices = lightest(choices, plan.time.step());
  choices.resize(std::min(choices.size(), kInstructionsOrdered / instructions));
  tried_ += static_cast<std::int64_t>(choices.size());
  refined_.insert(refined_.end(), choices.begin(), choices.end());
  return {std::move(choices), false};
}

NearSearch::Found NearSearch::lightest_compared(const Plan& plan, const Choice& center, std::vector<Choice> choices) {
  const std::size_t instructions = plan.program.instructions.size();
  tried_ += static_cast<std::int64_t>(choices.size());
  choices = lightest(choices, plan.time.step());
  const std::size_t most = std::clamp<std::size_t>(kInstructionsCrossed / instructions, 1, kMostNear);
  if (choices.size() > most) choices.resize(most);
  const std::vector<Choice> by_rule = short_by_rule(plan, center, choices);
  const auto is_short = [&](const Choice& choice) {
    return std::find(by_rule.begin(), by_rule.end(), choice) != by_rule.end();
  };
  std::erase_if(choices, std::not_fn(is_short));
  const std::size_t refined = std::clamp<std::size_t>(kInstructionsRefined / instructions, 1, kMostCrossedRefined);
  return {shorter_refined(plan, in_turn(choices, by_rule), refined), true};
}

/// The choices with lower bounds below `too_long`, smallest first; of those with equal bounds and equal costs only one.
std::vector<Choice> NearSearch::lightest(const std::vector<Choice>& choices, Picoseconds too_long) const {
  std::vector<std::pair<Picoseconds, std::int64_t>> weights(choices.size());  // with costs
  side_by_side(num_processors(kTriedAtOnce), choices.size(), [&](std::size_t, std::size_t i) {
    weights[i] = {input_.weigh(choices[i]), evaluate(input_.model.problem.problem, choices[i]).value({})};
  });
  std::vector<std::optional<Picoseconds>> bounds;
  std::set<std::pair<Picoseconds, std::int64_t>> seen;
  for (const auto& weight : weights) {
    bounds.push_back(seen.insert(weight).second ? std::optional(weight.first) : std::nullopt);
  }
  return shortest(choices, bounds, too_long);
}

/// The choices between a plan's and others, of those that were not refined before.
std::vector<Choice> NearSearch::choices_between(const Choice& center, const std::vector<Choice>& others) const {
  std::optional<TiedProblem> tied;
  if (input_.model.ties) tied = tied_problem(input_.model.problem.problem, *input_.model.ties);
  const auto is_uniform = [&](const Choice& choice) { return !tied || tied->expanded(tied->tied(choice)) == choice; };
  if (!is_uniform(center)) return {};
  std::vector<Choice> of_searched;
  for (const Choice& other : others) {
    if (is_uniform(other)) of_searched.push_back(tied ? tied->tied(other) : other);
  }
  std::vector<Choice> choices;
  for (Choice& crossed : crossed_choices(tied ? tied->problem : input_.model.problem.problem,
                                         tied ? tied->tied(center) : center, of_searched, kMostParts)) {
    Choice choice = tied ? tied->expanded(crossed) : std::move(crossed);
    if (!is_refined(choice)) choices.push_back(std::move(choice));
  }
  return choices;
}

/// At most `most` choices, of those that were not refined before.
std::vector<Choice> NearSearch::choices_near(const Guess& guess, const Choice& center, Picoseconds step,
                                             std::size_t most) const {
  const bool is_varied = most < kFewNear;
  NearLimits limits{step / 1000 * kMostMore, step / 1000 * kLeastMoved, is_varied ? kMostNear : most, kNearWork};
  limits.most_of_part = is_varied ? kMostOfPart : 0;
  const StrategyProblem guessed = input_.model.guessed(guess);
  std::optional<TiedProblem> tied;
  if (input_.model.ties) tied = tied_problem(guessed, *input_.model.ties);
  std::vector<Choice> choices;
  const Choice of_searched = tied ? tied->tied(center) : center;
  if (tied && tied->expanded(of_searched) != center) return {};  // its layers differ
  for (NearChoice& near : near_choices(tied ? tied->problem : guessed, of_searched, limits)) {
    Choice choice = tied ? tied->expanded(near.choice) : std::move(near.choice);
    if (!is_refined(choice)) choices.push_back(std::move(choice));
  }
  return is_varied ? some_of(choices, most) : choices;
}

/// `most` choices: half of them the cheapest by another estimate, the others in the given order.
std::vector<Choice> NearSearch::some_of(const std::vector<Choice>& choices, std::size_t most) const {
  std::vector<std::optional<Picoseconds>> steps;
  for (const Choice& choice : choices) {
    steps.push_back(input_.model.guessed_step(kMostlyHidden, choice));
  }
  std::vector<Choice> some = shortest(choices, steps, kForbidden);
  some.resize(std::min(some.size(), (most + 1) / 2));
  for (const Choice& choice : choices) {
    if (some.size() == most) break;
    if (std::find(some.begin(), some.end(), choice) == some.end()) some.push_back(choice);
  }
  return some;
}

/// The choices whose orders by the plan's rule, unrefined, are hardly longer than the plan's, shortest first.
std::vector<Choice> NearSearch::short_by_rule(const Plan& plan, const Choice& center,
                                              std::vector<Choice> choices) const {
  choices.insert(choices.begin(), center);
  const std::vector<std::optional<Picoseconds>> ends = ends_by_rule(plan, choices, false);
  if (!ends.front()) return {};
  choices.erase(choices.begin());
  return shortest(choices, std::span(ends).subspan(1), *ends.front() / 100 * (100 + kPercentLonger));
}

/// Those of the first `most` choices whose refined orders by the plan's rule are shorter than the plan, shortest first.
std::vector<Choice> NearSearch::shorter_refined(const Plan& plan, std::vector<Choice> choices, std::size_t most) {
  if (choices.size() > most) choices.resize(most);
  refined_.insert(refined_.end(), choices.begin(), choices.end());
  return shortest(choices, ends_by_rule(plan, choices, true), plan.time.step());
}

/// By choice; for as many as time permits.
std::vector<std::optional<Picoseconds>> NearSearch::ends_by_rule(const Plan& plan, const std::vector<Choice>& choices,
                                                                 bool is_refined) const {
  std::vector<std::optional<Picoseconds>> ends(choices.size());
  side_by_side(num_processors(kTriedAtOnce), choices.size(), [&](std::size_t, std::size_t i) {
    if (input_.deadline.is_over()) return;
    const Decisions decisions = input_.model.decisions_of(choices[i]);
    ends[i] = input_.step_by_rule(decisions, plan, is_refined);
  });
  return ends;
}

}  // namespace shardplan
