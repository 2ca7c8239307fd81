#include "planner/overlap/bound_matrices.h"

#include <memory>
#include <utility>

#include "planner/overlap/joined_costs.h"
#include "planner/overlap/joined_problem.h"

namespace shardplan {
namespace {

// Measured times need not be concave in the bytes; then no member of a bucket is counted with its start-up.
IdVector<EdgeId, char> leads_of(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                const CountedLevels& counted) {
  if (!counted.is_measured) return leading_edges(problem, graph, versions);
  return IdVector<EdgeId, char>(problem.problem.edges.size(), 0);
}

StepBound::Matrices with_joins(StepBound::Matrices matrices, const ModelProblem& problem, const OperatorGraph& graph,
                               const TensorVersions& versions, const IdVector<EdgeId, char>& leads) {
  for (const EdgeId id : problem.problem.edges.ids()) {
    const bool joins = joining(graph, versions, problem.communicated[id]) != Joining::kNone;
    matrices.joins.push_back(leads[id] == 0 && joins);
  }
  return matrices;
}

}  // namespace

StepBound::Matrices coarse_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                    const CountedLevels& counted) {
  const IdVector<EdgeId, char> leads = leads_of(problem, graph, versions, counted);
  const auto on = [&](int level) {
    using Kinds = JoinedCosts::Kinds;
    RedistributionPlanner joined(
        counted.costs.mesh(),
        std::make_shared<const JoinedCosts>(counted.costs, Kinds::kGathersToo, level, counted.is_measured),
        counted.options);
    return counted_matrices(problem, graph, versions, {{nullptr, &joined, &joined}, false}, leads);
  };
  StepBound::Matrices result;
  result.on_all = on(JoinedCosts::kAnyLevel);
  if (counted.level) result.on_part.push_back(on(*counted.level));
  return with_joins(std::move(result), problem, graph, versions, leads);
}

StepBound::Matrices fine_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                  const CountedLevels& counted) {
  using Kinds = JoinedCosts::Kinds;
  using Which = CountedOnPath::Which;
  const IdVector<EdgeId, char> leads = leads_of(problem, graph, versions, counted);
  const auto joined_costs = [&](Kinds kinds) {
    return std::make_shared<const JoinedCosts>(counted.costs, kinds, JoinedCosts::kAnyLevel, counted.is_measured);
  };
  const auto on = [&](Which which) {
    const auto planner = [&](const std::shared_ptr<const CollectiveCosts>& costs) {
      return RedistributionPlanner(
          counted.costs.mesh(),
          std::make_shared<const CountedOnPath>(counted.costs, costs, which, counted.level.value_or(0)),
          counted.options);
    };
    RedistributionPlanner alone = planner(counted.costs.collectives());
    RedistributionPlanner reductions = planner(joined_costs(Kinds::kReductions));
    RedistributionPlanner joined = planner(joined_costs(Kinds::kGathersToo));
    RedistributionPlanner* const own = which == Which::kAll ? nullptr : &alone;
    return counted_matrices(problem, graph, versions, {{own, &reductions, &joined}, true}, leads);
  };
  StepBound::Matrices result;
  result.on_all = on(Which::kAll);
  if (counted.level) result.on_part = {on(Which::kOnLevel), on(Which::kOffLevel)};
  return with_joins(std::move(result), problem, graph, versions, leads);
}

}  // namespace shardplan
