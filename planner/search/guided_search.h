#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"
#include "planner/problem/model_problem.h"
#include "planner/search/level_search.h"
#include "solver/limits.h"

namespace shardplan {

/// Searches the problem of a model with knowledge of its operators, which a `Search` does not have. If an answer
/// stays far from its bound, it searches restricted versions of the problem that people would try first, and starts
/// again from the best choice found there.
class GuidedSearch {
 public:
  /// `model` says what the nodes of the problems stand for; `pieces` are the mesh pieces from which its strategies
  /// were enumerated. In `options`, the work limit applies to each search and the time limit to all together. With
  /// `takes_longer`, a search continues beyond the work limit by some passes over the problem while its gap is large,
  /// and ends earlier once its answer is good.
  GuidedSearch(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& model,
               const std::vector<AxisRef>& pieces, std::string_view search, LevelOptions options,
               bool takes_longer = false);

  /// The best choice found, no worse than `start` if that is feasible. Requires that `problem` is the model's,
  /// possibly with other memory limits. `first_answer` receives the result of the first search of the full problem;
  /// `known_bound` is a bound that holds for it (`LevelOptions`).
  LevelResult find(const StrategyProblem& problem, const std::optional<Choice>& start,
                   std::function<void(const Choice&)> first_answer = {}, std::int64_t known_bound = 0) const;
  /// The same with a bound computed in parallel, for a search that gives none; without `bound_options` it equals
  /// `find`.
  LevelResult find_with_bound(const StrategyProblem& problem, const std::optional<Choice>& start,
                              const std::optional<LevelOptions>& bound_options,
                              std::function<void(const Choice&)> first_answer) const;

  /// Whether the time limit was reached: another run may then find another result.
  bool is_out_of_time() const { return deadline_.reached() == Limit::kTime; }

 private:
  LevelResult search(const StrategyProblem& problem, std::string_view name, LevelOptions options) const;
  LevelResult from_least_memory(const StrategyProblem& problem, LevelResult found) const;
  LevelResult from_uniform(const StrategyProblem& problem, LevelResult found) const;
  LevelResult from_parts(const StrategyProblem& problem, LevelResult found) const;
  /// The best choice with uniform layers, if there is one; found quickly for any number of copies.
  std::optional<Choice> best_uniform(const StrategyProblem& problem, Level level) const;
  /// That choice as the answer, if the bound from a few blocks of layers proves that no other is better by more than
  /// the accepted gap; the full problem is then not searched. Requires a call of `best_uniform` before.
  std::optional<LevelResult> proven_by_blocks(const StrategyProblem& problem, const Choice& choice) const;
  enum class Parts { kFirst, kAll };
  /// The best choice of the restricted problems, if it is better than the known one.
  std::optional<Choice> best_of_parts(const StrategyProblem& problem, const std::optional<Choice>& known,
                                      Parts which) const;
  /// Every operator that can shards the batch over the first `num_pieces` pieces.
  void cut_batch(StrategyProblem& problem, std::size_t num_pieces) const;
  /// Nothing is sharded over the first `num_pieces` pieces: all groups along them do the same.
  void leave_out(StrategyProblem& problem, std::size_t num_pieces) const;
  /// Removes the strategies of contractions that take longer than the shortest: those repeat work.
  void keep_least_work(StrategyProblem& problem) const;

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const ModelProblem& model_;
  std::vector<AxisRef> pieces_;
  IdVector<OperatorId, std::optional<std::uint32_t>> batch_;
  mutable std::optional<IdVector<NodeId, NodeId>> ties_;  // once asked for
  std::string_view name_;
  LevelOptions options_;
  bool takes_longer_;
  Deadline deadline_;
};

}  // namespace shardplan
