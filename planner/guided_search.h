#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"
#include "planner/levels.h"
#include "planner/model_problem.h"
#include "solver/limits.h"

namespace shardplan {

/// Searches the problem of a model. What the stages of planner/ cannot know is what the operators are; where an answer
/// stays far from its bound this looks at parts of the problem that people would look at first, and begins again at the
/// best that it finds there.
class GuidedSearch {
 public:
  /// `problem` stays with the caller, who may lower its memory limits between two calls of `find`. `pieces` are those
  /// of the mesh that strategies were enumerated from. The limits in `options` are for each search (the work) and for
  /// all together (the seconds).
  GuidedSearch(const OperatorGraph& graph, const ModelProblem& problem, const std::vector<AxisRef>& pieces,
               std::string_view search, LevelOptions options);

  /// The best choice found, no worse than `start` if that is feasible.
  LevelResult find(const std::optional<Choice>& start) const;

 private:
  LevelResult search(const StrategyProblem& problem, std::string_view name, LevelOptions options) const;
  LevelResult from_least_memory(LevelResult found) const;
  LevelResult from_batch_cuts(LevelResult found) const;
  std::optional<Choice> best_of_batch_cuts(const Choice& known) const;
  /// The problem with the batch cut over the first so many pieces by every operator that can.
  void cut_batch(StrategyProblem& problem, std::size_t num_pieces) const;

  const OperatorGraph& graph_;
  const ModelProblem& problem_;
  std::vector<AxisRef> pieces_;
  IdVector<OperatorId, std::optional<std::uint32_t>> batch_;
  std::string_view name_;
  LevelOptions options_;
  Deadline deadline_;
};

}  // namespace shardplan
