// Weights and choices play a matrix game: weights maximise the weighted sum of the choice, which minimises it. Its value
// is the best bound that weights can give. Each round computes the best mixture of the known weights against the known
// choices (by fictitious play), and searches for the best choice against it, which adds weights. Such mixtures jump
// from round to round, so each round goes only half of the way from the best weights so far.
#include "planner/overlap/weight_rounds.h"

#include <algorithm>
#include <utility>

#include "planner/overlap/best_mixture.h"
#include "planner/overlap/step_proof.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

constexpr double kLeastOfRound = 1e-3;  // seconds
/// Rounds on the problem with uniform layers, and on the problem itself if no layers are tied.
constexpr int kUniformRounds = 8, kFreeRounds = 3;
/// At most this many matrix entries in all rounds, which takes less time than the search before them; of larger
/// problems one round.
constexpr std::size_t kEntriesOfRounds = 30'000'000;
/// Choices are also sought that are best if this part of all communication counts beside the kernels: 1 / each.
constexpr std::int64_t kHiddenParts[] = {16, 4};
/// At most this many choices are scheduled, with those that were scheduled before.
constexpr std::int64_t kMostOrdered = 5;
/// A step this near to its bound is not worth scheduling more choices.
constexpr double kWorthACandidate = 0.025;
/// A bound this near to the best that other weights could reach is good enough.
constexpr double kNothingToGain = 2e-3;
/// Limits of each round's search; the second pair where it only serves to find weights.
constexpr std::uint64_t kRoundWork = 100'000'000;
constexpr double kRoundGap = 3e-3;
constexpr std::uint64_t kUniformWork = 20'000'000;
constexpr double kUniformGap = 1e-2;

}  // namespace

WeightRounds::WeightRounds(Input input) : input_(std::move(input)) {
  most_ = std::max(1, affordable(kEntriesOfRounds, kUniformRounds + kFreeRounds));
}

int WeightRounds::affordable(std::size_t entries, int most) const {
  const SearchedModel& model = input_.model;
  const auto rounds = [&](const StrategyProblem& problem) {
    return static_cast<int>(std::min(entries / (1 + num_entries(problem)), static_cast<std::size_t>(most)));
  };
  return rounds(model.ties ? tied_problem(model.problem.problem, *model.ties).problem : model.problem.problem);
}

LevelOptions WeightRounds::options(bool is_uniform) const {
  LevelOptions options = input_.options;
  const bool is_for_weights_alone = is_uniform && !input_.is_uniform;
  const std::uint64_t work = is_for_weights_alone ? kUniformWork : kRoundWork;
  options.limits.work = std::min(work, options.limits.work > 0 ? options.limits.work : work);
  options.limits.gap = is_for_weights_alone ? kUniformGap : kRoundGap;
  options.limits.progress = {};
  if (options.limits.seconds > 0) {
    options.limits.seconds = std::max(kLeastOfRound, options.limits.seconds - input_.deadline.elapsed());
  }
  return options;
}

Picoseconds WeightRounds::begin(const Choice& planned) {
  const SearchedModel& model = input_.model;
  weights_.push_back(input_.bound.weights_of_slowdown());
  add(planned);
  for (const Decisions& decisions : input_.known) {
    const auto choice = find_choice(model.versions, model.problem, decisions.strategies, decisions.versions);
    if (choice && evaluate(model.problem.problem, *choice).forbidden_count == 0) add(*choice);
  }
  best_ = weights_.front();
  return least_ = round(best_, model.ties.has_value()).value_or(0);
}

Picoseconds WeightRounds::go_on(bool is_last) {
  const bool has_ties = input_.model.ties.has_value();
  if (!is_last) least_ = improve(has_ties, has_ties ? kUniformRounds : kFreeRounds, least_);
  // Weights that suit the choices of uniform layers nearly suit all.
  if (has_ties && !input_.is_uniform) least_ = round(best_, false).value_or(0);
  if (!is_last) try_hidden(least_);
  return least_;
}

/// Goes half of the way from the best weights so far, which prove `least`, to those that are best against all choices so
/// far, again and again. Returns the bound that the best weights prove.
Picoseconds WeightRounds::improve(bool is_uniform, int count, Picoseconds least) {
  for (int i = 1; i < count && count_ < most_ && !input_.deadline.is_over() &&
                  !is_near(input_.incumbent.step(), least, kTightBound);
       ++i) {
    std::vector<std::vector<Picoseconds>> sums;
    for (const OverlapWeights& weights : weights_) {
      std::vector<Picoseconds>& row = sums.emplace_back();
      for (const StepBound::Times& times : times_) row.push_back(StepBound::sum(weights, times));
    }
    const OverlapWeights against_all = mean(weights_, rough_mixture(sums));
    Picoseconds most = kForbidden;  // the plan's is among them
    for (const StepBound::Times& times : times_) most = std::min(most, StepBound::sum(against_all, times));
    if (is_near(most, least, kNothingToGain)) break;
    OverlapWeights between = mean({best_, against_all}, {1, 1});
    const std::optional<LevelResult> searched = search(between, is_uniform);
    if (is_near(input_.incumbent.finished().time.step(), least, kTightBound)) break;
    const std::optional<Picoseconds> found = accept(searched, is_uniform);
    if (!found) break;
    if (*found <= least) continue;
    least = *found;
    best_ = std::move(between);
  }
  return least;
}

/// Rounds with weights that prove nothing new, for their choices alone.
void WeightRounds::try_hidden(Picoseconds least) {
  const bool is_uniform = input_.model.ties.has_value();
  for (const std::int64_t parts : kHiddenParts) {
    if (count_ >= most_ || input_.deadline.is_over() || is_near(input_.incumbent.step(), least, kTightBound)) return;
    OverlapWeights weights = weights_.front();
    for (std::int64_t& weight : weights.items) weight = OverlapWeights::kWhole / parts;
    const std::optional<LevelResult> found = search(weights, is_uniform);
    if (is_near(input_.incumbent.finished().time.step(), least, kTightBound)) return;
    accept(found, is_uniform);
  }
}

/// The least weighted sum of all choices, or of those with uniform layers; nothing if none fits.
std::optional<LevelResult> WeightRounds::search(const OverlapWeights& weights, bool is_uniform) const {
  const StepProof proof{input_.bound, is_uniform ? input_.model.ties : std::nullopt, options(is_uniform)};
  return least_sum(proof, weights, std::nullopt);
}

/// Counts a round. Schedules its choice, unless it is known, cannot be much shorter in any order, or is not asked for
/// because its layers differ. Returns the round's bound.
std::optional<Picoseconds> WeightRounds::accept(const std::optional<LevelResult>& found, bool is_uniform) {
  ++count_;
  if (!found) return std::nullopt;
  const bool is_asked_for = is_uniform || !input_.is_uniform;
  IncumbentPlan& incumbent = input_.incumbent;
  if (found->choice && is_asked_for && adds(*found->choice) && incumbent.ordered() < kMostOrdered &&
      !is_near(incumbent.step(), least_, kWorthACandidate)) {
    incumbent.try_beside(input_.model.decisions_of(*found->choice));
  }
  return found->bound.amount;
}

void WeightRounds::add(const Choice& choice) {
  choices_.push_back(choice);
  times_.push_back(input_.bound.times_of(choice));
  for (OverlapWeights& weights : input_.bound.weights_at(times_.back())) weights_.push_back(std::move(weights));
}

bool WeightRounds::adds(const Choice& choice) {
  if (std::find(choices_.begin(), choices_.end(), choice) != choices_.end()) return false;
  add(choice);
  return may_be_faster(times_.back()) && !is_scheduled(choice);
}

bool WeightRounds::may_be_faster(const StepBound::Times& times) const {
  const Picoseconds step = input_.incumbent.finished().time.step();
  return std::all_of(weights_.begin(), weights_.end(),
                     [&](const OverlapWeights& weights) { return StepBound::sum(weights, times) < step; });
}

bool WeightRounds::is_known(const Choice& choice) const {
  return is_scheduled(choice) || std::find(choices_.begin(), choices_.end(), choice) != choices_.end();
}

bool WeightRounds::is_scheduled(const Choice& choice) const {
  return std::find(scheduled_.begin(), scheduled_.end(), choice) != scheduled_.end();
}

}  // namespace shardplan
