#include "planner/overlap/bound_matrices.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/side_by_side.h"
#include "planner/overlap/joined_costs.h"

namespace shardplan {
namespace {

using Kinds = JoinedCosts::Kinds;
constexpr std::size_t kCountedAtOnce = 3;  // threads

// Measured times need not be concave in the bytes; then no member of a bucket is counted with its start-up.
LeadingEdges leads_of(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                      const CountedLevels& counted, const LeadingChoice* leading) {
  if (counted.is_measured) return LeadingEdges(problem);
  return leading_edges(problem, graph, versions, {counted.costs, counted.options}, leading);
}

/// The matrices of `counted`, called with each of these arguments: the first counts on all levels.
template <class Argument, class Count>
StepBound::Matrices all_of(ModelProblem& problem, const std::vector<Argument>& arguments, const Count& count) {
  std::vector<CountedMatrices> counted(arguments.size());
  side_by_side(num_processors(kCountedAtOnce), arguments.size(),
               [&](std::size_t, std::size_t i) { counted[i] = count(arguments[i]); });
  StepBound::Matrices result;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    IdVector<EdgeId, MatrixId> of_edges = add_matrices(problem, std::move(counted[i]));
    if (i == 0) {
      result.on_all = std::move(of_edges);
    } else {
      result.on_part.push_back(std::move(of_edges));
    }
  }
  return result;
}

StepBound::Matrices with_joins(StepBound::Matrices matrices, const ModelProblem& problem, const OperatorGraph& graph,
                               const TensorVersions& versions, const LeadingEdges& leads) {
  for (const EdgeId id : problem.problem.edges.ids()) {
    const bool joins = joining(graph, versions, problem.communicated[id]) != Joining::kNone;
    matrices.joins.push_back(leads.on_path[id] == 0 && joins);
  }
  return matrices;
}

}  // namespace

StepBound::Matrices coarse_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                    const CountedLevels& counted) {
  const LeadingEdges leads = leads_of(problem, graph, versions, counted, nullptr);
  const auto on = [&](int level) {
    const auto of = [&](Joining joins, const AloneClasses& alone) -> std::shared_ptr<const CollectiveCosts> {
      if (joins == Joining::kNone) return nullptr;
      return std::make_shared<const JoinedCosts>(counted.costs, Kinds::kGathersToo, level, counted.is_measured, alone);
    };
    return counted_matrices(problem, graph, versions, {{counted.costs, counted.options}, of, false}, leads);
  };
  std::vector<int> levels{JoinedCosts::kAnyLevel};
  if (counted.level) levels.push_back(*counted.level);
  return with_joins(all_of(problem, levels, on), problem, graph, versions, leads);
}

StepBound::Matrices fine_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                  const CountedLevels& counted, const LeadingChoice& leading) {
  const LeadingEdges leads = leads_of(problem, graph, versions, counted, &leading);
  const auto matrices = [&](std::optional<bool> is_on_level) {
    const auto of = [&](Joining joins, const AloneClasses& alone) -> std::shared_ptr<const CollectiveCosts> {
      if (joins == Joining::kNone && !is_on_level) return nullptr;
      std::shared_ptr<const CollectiveCosts> costs = counted.costs.collectives();
      if (joins != Joining::kNone) {
        costs = std::make_shared<const JoinedCosts>(counted.costs,
                                                    joins == Joining::kAll ? Kinds::kGathersToo : Kinds::kReductions,
                                                    JoinedCosts::kAnyLevel, counted.is_measured, alone);
      }
      if (!is_on_level) return costs;
      return std::make_shared<const CostsOnLinks>(counted.costs, std::move(costs), *counted.level, *is_on_level);
    };
    return counted_matrices(problem, graph, versions, {{counted.costs, counted.options}, of, true}, leads);
  };
  std::vector<std::optional<bool>> are_on_level{std::nullopt};
  if (counted.level) are_on_level.insert(are_on_level.end(), {true, false});
  return with_joins(all_of(problem, are_on_level, matrices), problem, graph, versions, leads);
}

}  // namespace shardplan
