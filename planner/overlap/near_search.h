#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/plan.h"
#include "planner/problem/model_problem.h"
#include "program/lower.h"
#include "solver/limits.h"

namespace shardplan {

/// Of the choices near a plan's (planner/overlap/near_choices.h) those that are worth ordering by all rules.
///   NearSearch near({...});
///   near.worth_ordering(plan);   // as often as a shorter plan is found
class NearSearch {
 public:
  /// Has to outlast the search.
  struct Model {
    const OperatorGraph& graph;
    const TensorVersions& versions;
    const ModelProblem& problem;  // layers not tied
    const DeviceMesh& mesh;
    const std::optional<IdVector<NodeId, NodeId>>& ties;  // of uniform layers
    /// As in OverlapSearch.
    const std::function<std::optional<Picoseconds>(const Decisions&, const Plan&, bool is_refined)>& step_by_rule;
    const Deadline& deadline;
  };
  explicit NearSearch(const Model& model) : model_(model) {}

  struct Found {
    std::vector<Choice> choices;  // the most promising first
    bool is_compared = true;      // they are shorter than the plan in refined orders by its rule; else nothing is known
  };
  Found worth_ordering(const Plan& plan);

  /// How many have been looked at.
  std::int64_t tried() const { return tried_; }

 private:
  std::vector<Choice> choices_near(const Choice& center, Picoseconds step, std::size_t most) const;
  std::vector<Choice> some_of(const std::vector<Choice>& choices, std::size_t most) const;
  std::vector<Choice> shorter_by_rule(const Plan& plan, const Choice& center, std::vector<Choice> choices);
  std::vector<std::optional<Picoseconds>> ends_by_rule(const Plan& plan, const std::vector<Choice>& choices,
                                                       bool is_refined) const;

  Model model_;
  std::vector<Choice> refined_;  // of all turns
  std::int64_t tried_ = 0;
};

}  // namespace shardplan
