#pragma once

#include <optional>

#include "graph/tensor_versions.h"
#include "planner/overlap/guessed_problem.h"
#include "planner/plan.h"
#include "planner/problem/model_problem.h"
#include "planner/problem/plan_choice.h"

namespace shardplan {

/// The problem in which the shortest overlapped step is sought, and what its choices stand for. All references must
/// outlive it.
struct SearchedModel {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const ModelProblem& problem;  // layers not tied
  const DeviceMesh& mesh;
  std::optional<IdVector<NodeId, NodeId>> ties;  // of uniform layers; not set: layers are free
  /// By edge the matrix of its times without the start-ups that buckets share; null: no collective shares one.
  const IdVector<EdgeId, MatrixId>* without_start_ups = nullptr;

  Decisions decisions_of(const Choice& choice) const {
    return shardplan::decisions_of(graph, versions, problem, choice, mesh);
  }
  /// Nothing if the plan is not a choice of the problem.
  std::optional<Choice> choice_of(const Plan& plan) const {
    return find_choice(versions, problem, plan.strategies, plan.versions);
  }
  std::optional<Choice> choice_of(const Decisions& decisions) const {
    return find_choice(versions, problem, decisions.strategies, decisions.versions);
  }
  StrategyProblem guessed(const Guess& guess) const {
    return guessed_problem(problem, graph, versions, without_start_ups, guess);
  }
  Picoseconds guessed_step(const Guess& guess, const Choice& choice) const {
    return shardplan::guessed_step(problem, graph, versions, without_start_ups, guess, choice);
  }
};

}  // namespace shardplan
