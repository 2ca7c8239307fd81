#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/roofline_costs.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "model/model.h"
#include "model/planned_model.h"
#include "planner/problem/model_problem.h"
#include "planner/problem/plan_choice.h"
#include "program/lower.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// A model with everything that is computed on the way to its plans, for tests of the intermediate results.
struct PlannedModel {
  Model model;
  OperatorGraph graph;
  TensorVersions versions;
  std::unique_ptr<CostModel> costs;
  std::unique_ptr<RedistributionPlanner> redistributions;
  Restrictions restrictions;
  ModelProblem problem;

  PlannedModel(Model read, const std::string& cluster, const std::vector<MeshAxis>& axes,
               UnevenCuts uneven = UnevenCuts::kNone)
      : PlannedModel(std::move(read), read_cluster(cluster), axes, uneven) {}
  PlannedModel(Model read, const Cluster& machine, const std::vector<MeshAxis>& axes = {},
               UnevenCuts uneven = UnevenCuts::kNone)
      : model(one_micro_batch(read)) {
    graph = planned_graph(model);
    versions = tensor_versions(graph);
    const DeviceMesh mesh = axes.empty() ? make_mesh(machine) : make_mesh(machine, axes);
    costs = std::make_unique<RooflineCosts>(machine, mesh);
    restrictions = no_restrictions(graph, versions);
    if (axes.empty()) restrictions.pieces = search_pieces(mesh);
    for (std::size_t axis = 0; axis < axes.size(); ++axis) restrictions.pieces.push_back(mesh.whole(axis));
    RedistributionOptions options;
    options.pieces = restrictions.pieces;
    redistributions = std::make_unique<RedistributionPlanner>(mesh, costs->collectives(), options);
    restrictions.capacity = kUnlimitedBytes;
    restrictions.uneven = uneven;
    problem = build_problem(graph, versions, *costs, *redistributions, restrictions);
  }

  /// The same problem with a node for every copy that an operator may keep.
  ModelProblem with_copies() const {
    Restrictions with = restrictions;
    with.counts_copies = true;
    return build_problem(graph, versions, *costs, *redistributions, with);
  }
  /// And what redistributions hold while they run.
  ModelProblem with_redistributions() const {
    Restrictions with = restrictions;
    with.counts_redistributions = true;
    return build_problem(graph, versions, *costs, *redistributions, with);
  }

  /// Some choice without a kForbidden: random strategies; versions are redrawn until they fit.
  Choice random_choice(Random& random) const {
    Choice choice;
    for (const NodeId node : problem.problem.nodes.ids()) {
      choice.strategy.push_back(StrategyId(random.below(problem.problem.num_strategies(node))));
    }
    for (int round = 0; round < 1000 && evaluate(problem.problem, choice).forbidden_count > 0; ++round) {
      for (const ProblemEdge& edge : problem.problem.edges) {
        const CostMatrix& matrix = problem.problem.matrices[edge.matrix];
        const auto cost = [&] {
          return matrix.costs[choice.strategy[edge.from].value() * matrix.columns + choice.strategy[edge.to].value()];
        };
        if (cost() >= kForbidden)
          choice.strategy[edge.to] = StrategyId(random.below(problem.problem.num_strategies(edge.to)));
      }
    }
    return choice;
  }

  Decisions decided(const Choice& choice) const {
    Decisions decisions;
    for (const OperatorId op : graph.operators().ids()) decisions.strategies.push_back(problem.strategy(op, choice));
    decisions.versions = version_layouts(graph, versions, problem, choice, costs->mesh());
    return decisions;
  }

  ParallelProgram lowered(const Choice& choice) const {
    return lower(graph, versions, decided(choice), *costs, *redistributions);
  }
};

/// Whether a collective's result is never read: the program took a better way than the choice.
inline bool has_unread_result(const ParallelProgram& program) {
  std::set<ValueId> unread;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind == InstructionKind::kCollective && !instruction.op) unread.insert(instruction.outputs[0]);
    for (const ValueId input : instruction.inputs) unread.erase(input);
  }
  for (const auto* bindings : {&program.outputs, &program.updates}) {
    for (const Binding& binding : *bindings) unread.erase(binding.value);
  }
  return !unread.empty();
}

}  // namespace shardplan
