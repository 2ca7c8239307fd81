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

/// Finds the choices near a plan's (planner/overlap/near_choices.h) that are worth scheduling by all rules:
///   NearSearch near({...});
///   near.worth_ordering(plan);   // again for every shorter plan
class NearSearch {
 public:
  /// Must outlive the search.
  struct Model {
    const OperatorGraph& graph;
    const TensorVersions& versions;
    const ModelProblem& problem;  // layers not tied
    const DeviceMesh& mesh;
    const std::optional<IdVector<NodeId, NodeId>>& ties;  // of uniform layers; not set: layers are free
    /// As in OverlapSearch.
    const std::function<std::optional<Picoseconds>(const Decisions&, const Plan&, bool is_refined)>& step_by_rule;
    const Deadline& deadline;
  };
  explicit NearSearch(const Model& model) : model_(model) {}

  struct Found {
    std::vector<Choice> choices;  // most promising first
    bool is_compared = true;  // their refined orders by the plan's rule are shorter than the plan; false: not compared
  };
  Found worth_ordering(const Plan& plan);

  /// Number of choices looked at.
  std::int64_t tried() const { return tried_; }

 private:
  std::vector<Choice> choices_near(const Choice& center, Picoseconds step, std::size_t most) const;
  std::vector<Choice> some_of(const std::vector<Choice>& choices, std::size_t most) const;
  std::vector<Choice> shorter_by_rule(const Plan& plan, const Choice& center, std::vector<Choice> choices);
  std::vector<std::optional<Picoseconds>> ends_by_rule(const Plan& plan, const std::vector<Choice>& choices,
                                                       bool is_refined) const;

  Model model_;
  std::vector<Choice> refined_;  // of all calls
  std::int64_t tried_ = 0;
};

}  // namespace shardplan
