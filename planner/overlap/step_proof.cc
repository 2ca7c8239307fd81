// A matrix game between weights and choices: the weights maximise the weighted sum, the choice minimises it. The
// value of the game is the best bound that weights can give. It is solved by a double oracle (McMahan, Gordon, Blum,
// ICML 2003): a search responds to a mixture of weights with a choice, covers (StepBound::weights_at) respond to a
// mixture of choices with weights, and the known responses form a matrix game (best_mixture.h). Responses of weights
// cost next to nothing, so they are repeated as long as they help. Optimal mixtures jump from round to round, so each
// search only moves part of the way from the best weights so far, a smaller part if that did not help. If it returns
// a known choice, only the full step gives new information.
#include "planner/overlap/step_proof.h"

#include <algorithm>
#include <utility>

#include "planner/overlap/best_mixture.h"
#include "solver/limits.h"
#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

/// A bound this close to the best that other weights could reach is good enough.
constexpr double kLittleToGain = 5e-3;
/// Times above this multiple of the plan's step are not distinguished.
constexpr Picoseconds kManySteps = 8;
/// The smallest fraction of the way that a round moves is 1 / this.
constexpr std::int64_t kSmallestPart = 16;
/// Maximal number of consecutive responses of weights.
constexpr int kMostAnswers = 10;

class Game {
 public:
  Game(const StepProof& proof, const std::vector<Choice>& choices) : proof_(proof), num_given_(choices.size()) {
    weights_.push_back(proof.bound.weights_of_slowdown());
    for (const Choice& choice : choices) add(choice);
  }

  ProvenStep run() {
    const Deadline deadline(proof_.options.limits.seconds, proof_.options.limits.stop);
    best_.bound = proof_.known;
    best_.weights = weights_.front();
    std::int64_t part = 2;  // of the way
    bool has_gained = false;
    while (best_.rounds < proof_.most_rounds && !deadline.is_over() &&
           !is_near(proof_.shortest, best_.bound, kTightBound)) {
      const OverlapWeights against_all = best_against_all();
      Picoseconds most = proof_.shortest;
      for (const StepBound::Times& times : times_) most = std::min(most, StepBound::sum(against_all, times));
      if (is_near(most, best_.bound, kLittleToGain)) break;
      const Picoseconds before = best_.bound;
      const std::size_t num_known = choices_.size();
      if (!round(mean({best_.weights, against_all}, {part - 1, 1}))) break;
      if (best_.bound > before) {
        has_gained = true;
        part = std::max<std::int64_t>(2, part / 2);
      } else if (choices_.size() == num_known) {
        if (part == 1) break;
        part = 1;
      } else if (has_gained || part == 2) {
        part = std::min(part * 2, kSmallestPart);
      } else {
        part = 1;  // the known bound may come from weights other than those to start from
      }
    }
    for (std::size_t i = num_given_; i < choices_.size(); ++i) {
      const bool may_be_shorter = std::all_of(weights_.begin(), weights_.end(), [&](const OverlapWeights& weights) {
        return StepBound::sum(weights, times_[i]) < proof_.shortest;
      });
      (may_be_shorter ? best_.shorter : best_.longer).push_back(choices_[i]);
    }
    best_.tried = std::move(weights_);
    return std::move(best_);
  }

 private:
  void add(const Choice& choice) {
    if (std::find(choices_.begin(), choices_.end(), choice) != choices_.end()) return;
    choices_.push_back(choice);
    times_.push_back(proof_.bound.times_of(choice));
    for (OverlapWeights& weights : proof_.bound.weights_at(times_.back())) weights_.push_back(std::move(weights));
  }

  /// The best mixture of weights against all choices, after adding the best weights for the best mixture of choices.
  OverlapWeights best_against_all() {
    for (int i = 0;; ++i) {
      std::vector<std::vector<Picoseconds>> sums;
      for (const OverlapWeights& weights : weights_) {
        std::vector<Picoseconds>& row = sums.emplace_back();
        for (const StepBound::Times& times : times_) {
          row.push_back(std::min(StepBound::sum(weights, times), kManySteps * proof_.shortest));
        }
      }
      const Mixture mixture = best_mixture(sums);
      OverlapWeights result = mean(weights_, mixture.sums);
      const StepBound::Times mixed = StepBound::mean(times_, mixture.choices);
      const Picoseconds value = StepBound::sum(result, mixed);
      bool is_better = false;
      for (OverlapWeights& weights : proof_.bound.weights_at(mixed)) {
        if (is_near(StepBound::sum(weights, mixed), value, kLittleToGain)) continue;
        is_better = true;
        weights_.push_back(std::move(weights));
      }
      if (!is_better || i == kMostAnswers) return result;
    }
  }

  /// False if nothing fits.
  bool round(const OverlapWeights& weights) {
    ++best_.rounds;
    std::size_t cheapest = 0;
    for (std::size_t i = 1; i < times_.size(); ++i) {
      if (StepBound::sum(weights, times_[i]) < StepBound::sum(weights, times_[cheapest])) cheapest = i;
    }
    const std::optional<LevelResult> least =
        least_sum(proof_, weights, choices_.empty() ? std::nullopt : std::optional(choices_[cheapest]));
    if (!least) return false;
    if (least->bound.amount > best_.bound) {
      best_.bound = least->bound.amount;
      best_.weights = weights;
    }
    if (least->choice) add(*least->choice);
    return true;
  }

  const StepProof& proof_;
  std::size_t num_given_;
  ProvenStep best_;
  std::vector<OverlapWeights> weights_;
  std::vector<Choice> choices_;
  std::vector<StepBound::Times> times_;
};

}  // namespace

std::optional<LevelResult> least_sum(const StepProof& proof, const OverlapWeights& weights,
                                     const std::optional<Choice>& start) {
  const StrategyProblem searched = proof.bound.weighted(weights);
  std::optional<TiedProblem> tied;
  if (proof.ties) tied = tied_problem(searched, *proof.ties);
  LevelOptions options = proof.options;
  options.start = start;
  if (tied && start) {
    options.start->strategy.resize(tied->problem.nodes.size());
    for (const NodeId node : searched.nodes.ids()) options.start->strategy[tied->node[node]] = start->strategy[node];
  }
  LevelResult found = search_level(tied ? tied->problem : searched, *make_search(kDefaultSearch), options);
  if (found.status == PlanStatus::kInfeasible) return std::nullopt;
  if (tied && found.choice) found.choice = tied->expanded(*found.choice);
  return found;
}

ProvenStep prove_step(const StepProof& proof, const std::vector<Choice>& choices) { return Game(proof, choices).run(); }

}  // namespace shardplan
