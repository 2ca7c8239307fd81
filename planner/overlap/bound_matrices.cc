#include "planner/overlap/bound_matrices.h"

#include <memory>
#include <utility>

#include "planner/overlap/joined_costs.h"

namespace shardplan {
namespace {

using Kinds = JoinedCosts::Kinds;

// Measured times need not be concave in the bytes; then no member of a bucket is counted with its start-up.
LeadingEdges leads_of(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                      const CountedLevels& counted, const LeadingChoice* leading) {
  if (counted.is_measured) return LeadingEdges(problem);
  return leading_edges(problem, graph, versions, {counted.costs, counted.options}, leading);
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
  StepBound::Matrices result;
  result.on_all = on(JoinedCosts::kAnyLevel);
  if (counted.level) result.on_part.push_back(on(*counted.level));
  return with_joins(std::move(result), problem, graph, versions, leads);
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
  StepBound::Matrices result;
  result.on_all = matrices(std::nullopt);
  if (counted.level) result.on_part = {matrices(true), matrices(false)};
  return with_joins(std::move(result), problem, graph, versions, leads);
}

}  // namespace shardplan
