#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/overlap/incumbent_plan.h"
#include "planner/overlap/near_search.h"
#include "planner/overlap/part_search.h"
#include "planner/overlap/searched_model.h"
#include "planner/search/level_search.h"

namespace shardplan {

/// Goes from a plan to shorter ones that differ from it in parts (planner/overlap/part_search.h), by estimates of what
/// the windows of each plan on the way could hide (planner/overlap/hiding_windows.h). What fits is kept in a pool
/// (planner/overlap/plan_pool.h) and looked around, best first.
class PartDescent {
 public:
  /// References must outlive the descent.
  struct Input {
    const SearchedModel& model;
    IncumbentPlan& incumbent;  // is replaced by better plans
    NearSearch& near;
    StrategyProblem of_bound;       // the weighted sum of the best bound
    LevelOptions options;           // of each search; its work limit is reduced
    std::function<bool()> is_done;  // the incumbent is good enough, or the time over
  };
  explicit PartDescent(Input input) : input_(std::move(input)), search_(input_.model, input_.options) {}

  /// Ends after `turns` looks in a row none of which led to a step that is shorter by a thousandth.
  void from(Plan start, int turns);

  std::int64_t looks() const { return looks_; }

 private:
  std::vector<Plan> look(const Plan& plan, const Choice& choice, std::size_t estimate);
  bool is_new(const Choice& choice) const;

  Input input_;
  PartSearch search_;
  std::vector<Choice> seen_;
  std::int64_t looks_ = 0;
};

}  // namespace shardplan
