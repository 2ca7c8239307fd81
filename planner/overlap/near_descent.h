#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/overlap/incumbent_plan.h"
#include "planner/overlap/near_search.h"
#include "planner/overlap/searched_model.h"

namespace shardplan {

/// Goes from a plan to shorter ones, near it or between it and other known choices (planner/overlap/near_search.h), as
/// long as there are any.
class NearDescent {
 public:
  /// References must outlive the descent.
  struct Input {
    const SearchedModel& model;
    IncumbentPlan& incumbent;  // is replaced by better plans
    NearSearch& near;
    std::function<std::vector<Choice>()> known;  // choices to cross plans with
    std::function<bool()> is_over;               // the time or the work
  };
  explicit NearDescent(Input input) : input_(std::move(input)) {}

  /// Every turn takes the first plan that is shorter by more than 0.5 %; before it `is_done` is asked.
  void from(Plan start, const std::function<bool()>& is_done);

 private:
  std::optional<Plan> shorter_than(const Plan& center, const NearSearch::Found& found);

  Input input_;
};

}  // namespace shardplan
