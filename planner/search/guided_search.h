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

/// Searches the problem of a model, guided by what its operators are, which a `Search` cannot know: where an answer
/// stays far from its bound this looks at parts of the problem that people would look at first, and begins again at the
/// best that it finds there.
class GuidedSearch {
 public:
  /// `model` says what the nodes of the problems stand for; `pieces` are those of the mesh that its strategies were
  /// enumerated from. The limits in `options` are for each search (the work) and for all together (the seconds); a
  /// search that `takes_longer` goes beyond the work, by some passes over the problem, where its answer is loose, and ends
  /// before where its answer is good.
  GuidedSearch(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& model,
               const std::vector<AxisRef>& pieces, std::string_view search, LevelOptions options,
               bool takes_longer = false);

  /// The best choice found, no worse than `start` if that is feasible. Requires that `problem` is the model's, perhaps
  /// under other memory limits. `first_answer` is told of what the first search of the whole finds (`LevelOptions`).
  LevelResult find(const StrategyProblem& problem, const std::optional<Choice>& start,
                   std::function<void(const Choice&)> first_answer = {}) const;
  /// The same with a bound that is sought beside it, for a search that gives none; without these options, just the same.
  LevelResult find_with_bound(const StrategyProblem& problem, const std::optional<Choice>& start,
                              const std::optional<LevelOptions>& bound_options,
                              std::function<void(const Choice&)> first_answer) const;

  /// Whether the seconds are over: what is found may then be another run's second best.
  bool is_out_of_time() const { return deadline_.reached() == Limit::kTime; }

 private:
  LevelResult search(const StrategyProblem& problem, std::string_view name, LevelOptions options) const;
  LevelResult from_least_memory(const StrategyProblem& problem, LevelResult found) const;
  LevelResult from_uniform(const StrategyProblem& problem, LevelResult found) const;
  LevelResult from_parts(const StrategyProblem& problem, LevelResult found) const;
  /// The best choice in which the copies of a repeated block have one strategy, if there is one: soon found, however many
  /// copies there are.
  std::optional<Choice> best_uniform(const StrategyProblem& problem, Level level) const;
  /// That choice as the answer, if the bound of a few blocks of layers shows that no other one is better by more than what is
  /// good enough: the whole is then not searched. Behind `best_uniform`.
  std::optional<LevelResult> proven_by_blocks(const StrategyProblem& problem, const Choice& choice) const;
  enum class Parts { kFirst, kAll };
  /// The best choice of the parts, if one is better than what is known.
  std::optional<Choice> best_of_parts(const StrategyProblem& problem, const std::optional<Choice>& known,
                                      Parts which) const;
  /// The batch cut over the first so many pieces by every operator that can.
  void cut_batch(StrategyProblem& problem, std::size_t num_pieces) const;
  /// Contractions without the strategies that take longer than the shortest: those repeat work.
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
