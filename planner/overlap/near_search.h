#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/overlap/searched_model.h"
#include "program/lower.h"
#include "solver/limits.h"

namespace shardplan {

/// Finds choices that are worth scheduling by all rules, near a plan's (planner/overlap/near_choices.h) and between it
/// and others (planner/overlap/crossed_choices.h):
///   NearSearch search({...});
///   search.near(plan);             // again for every shorter plan
///   search.crossed(plan, others);  // so too
class NearSearch {
 public:
  /// References must outlive the search.
  struct Input {
    const SearchedModel& model;
    /// As in OverlapSearch.
    const std::function<std::optional<Picoseconds>(const Decisions&, const Plan&, bool is_refined)>& step_by_rule;
    /// A lower bound on the overlapped step of a choice.
    const std::function<Picoseconds(const Choice&)> weigh;
    const Deadline& deadline;
  };
  explicit NearSearch(Input input) : input_(std::move(input)) {}

  struct Found {
    std::vector<Choice> choices;  // most promising first
    bool is_compared = true;  // their refined orders by the plan's rule are shorter than the plan; false: not compared
  };
  Found near(const Plan& plan);
  /// Of choices between the plan's and each of `others`, those with the smallest lower bounds are compared.
  Found crossed(const Plan& plan, const std::vector<Choice>& others);
  /// Of these, those with the smallest lower bounds are compared.
  Found compared(const Plan& plan, std::vector<Choice> choices);

  /// Number of choices whose steps were estimated.
  std::int64_t tried() const { return tried_; }

 private:
  std::vector<Choice> choices_near(const Guess& guess, const Choice& center, Picoseconds step, std::size_t most) const;
  Found lightest_compared(const Plan& plan, const Choice& center, std::vector<Choice> choices);
  std::vector<Choice> choices_between(const Choice& center, const std::vector<Choice>& others) const;
  std::vector<Choice> some_of(const std::vector<Choice>& choices, std::size_t most) const;
  std::vector<Choice> lightest(const std::vector<Choice>& choices, Picoseconds too_long) const;
  std::vector<Choice> short_by_rule(const Plan& plan, const Choice& center, std::vector<Choice> choices) const;
  std::vector<Choice> shorter_refined(const Plan& plan, std::vector<Choice> choices, std::size_t most);
  bool is_refined(const Choice& choice) const {
    return std::find(refined_.begin(), refined_.end(), choice) != refined_.end();
  }
  std::vector<std::optional<Picoseconds>> ends_by_rule(const Plan& plan, const std::vector<Choice>& choices,
                                                       bool is_refined) const;

  Input input_;
  std::vector<Choice> refined_;  // of all calls
  std::int64_t tried_ = 0;
};

}  // namespace shardplan
