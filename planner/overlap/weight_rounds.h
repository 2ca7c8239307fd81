#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/overlap/incumbent_plan.h"
#include "planner/overlap/searched_model.h"
#include "planner/overlap/step_bound.h"
#include "planner/search/level_search.h"

namespace shardplan {

/// Finds weights that prove a bound on the overlapped step (planner/overlap/step_bound.h), and choices on the way that
/// may be shorter than the incumbent, a few of which it schedules:
///   WeightRounds rounds({...});
///   Picoseconds bound = rounds.begin(planned);
///   bound = rounds.go_on(false);
class WeightRounds {
 public:
  /// References must outlive the rounds.
  struct Input {
    const SearchedModel& model;
    const StepBound& bound;
    const Deadline& deadline;
    IncumbentPlan& incumbent;
    LevelOptions options;          // of each search; its work limit is reduced
    bool is_uniform = false;       // plans whose layers differ are not asked for
    std::vector<Decisions> known;  // plans that could be shorter
  };
  explicit WeightRounds(Input input);

  /// The first round, with the weights of slowdown. The incumbent is this choice.
  Picoseconds begin(const Choice& planned);
  /// More rounds, as many as are worth their time; `is_last`: only the one without which there would be no bound on plans
  /// whose layers differ. Returns the bound.
  Picoseconds go_on(bool is_last);

  /// Adds a new choice; whether it may be shorter than the incumbent and was not scheduled before.
  bool adds(const Choice& choice);
  /// Says that this choice was scheduled elsewhere.
  void add_scheduled(const Choice& choice) { scheduled_.push_back(choice); }
  bool is_known(const Choice& choice) const;
  /// Whether no weights prove that it is not shorter than the incumbent.
  bool may_be_faster(const Choice& choice) const { return may_be_faster(input_.bound.times_of(choice)); }

  const std::vector<Choice>& choices() const { return choices_; }
  const std::vector<Choice>& scheduled() const { return scheduled_; }
  const std::vector<OverlapWeights>& weights() const { return weights_; }
  /// The weights that prove the bound.
  const OverlapWeights& best() const { return best_; }
  std::int64_t count() const { return count_; }
  /// Whether the problem is so large that only one round is affordable.
  bool is_large() const { return !input_.model.ties && most_ == 1; }

  /// At most `most` rounds on the problem, fewer if they would touch more than `entries` matrix entries.
  int affordable(std::size_t entries, int most) const;
  /// Options of the search in one round, with uniform or with free layers.
  LevelOptions options(bool is_uniform) const;

 private:
  Picoseconds improve(bool is_uniform, int count, Picoseconds least);
  void try_hidden(Picoseconds least);
  std::optional<LevelResult> search(const OverlapWeights& weights, bool is_uniform) const;
  std::optional<Picoseconds> accept(const std::optional<LevelResult>& found, bool is_uniform);
  std::optional<Picoseconds> round(const OverlapWeights& weights, bool is_uniform) {
    return accept(search(weights, is_uniform), is_uniform);
  }
  void add(const Choice& choice);
  bool is_scheduled(const Choice& choice) const;
  bool may_be_faster(const StepBound::Times& times) const;

  Input input_;
  OverlapWeights best_;
  std::vector<OverlapWeights> weights_;
  std::vector<Choice> choices_;
  std::vector<StepBound::Times> times_;  // by choice
  std::vector<Choice> scheduled_;        // elsewhere
  Picoseconds least_ = 0;
  std::int64_t most_ = 1, count_ = 0;
};

}  // namespace shardplan
