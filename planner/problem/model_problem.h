#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rare_value.h"
#include "base/shared_vector.h"
#include "costmodel/cost_model.h"
#include "costmodel/operator_steps.h"
#include "graph/operator_graph.h"
#include "graph/repeat_classes.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "solver/strategy_problem.h"
#include "strategies/enumerate.h"

namespace shardplan {

/// What narrows the candidates of a problem.
struct Restrictions {
  IdVector<OperatorId, SharedVector<Strategy>> operators;  // empty: all that can be enumerated
  IdVector<VersionId, RareValue<TensorLayout>> versions;   // the layout that a version must have
  IdVector<VersionId, SharedVector<TensorLayout>> among;   // or some, of which it has one; empty: all that are possible
  bool least_contraction_work = false;  // level 0: contractions keep only the strategies that repeat the least work
  std::vector<AxisRef> pieces;          // the mesh's, for enumeration
  UnevenCuts uneven = UnevenCuts::kNone;
  bool counts_copies = false;                    // memory holds the copies of `ModelProblem::copies`, too
  Bytes capacity = 0;                            // at every time
  std::shared_ptr<const RepeatClasses> uniform;  // set: copies of a repeated block take one strategy
};
/// Drops the strategies of a contraction by which several devices do work that others leave to each alone.
void keep_least_work(const Operation& operation, std::vector<Strategy>& strategies);
/// Nothing narrowed but sizes set.
Restrictions no_restrictions(const OperatorGraph& graph, const TensorVersions& versions);

/// By time of the schedule: two of a problem's times, of which the fuller holds no less. Empty: both have the same times.
using ProblemTimes = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct CopyPositions;  // operand_copies.h

/// A graph's sharding problem and what its nodes stand for.
struct ModelProblem {
  struct VersionChoice {
    TensorLayout layout;
    bool shares_stored = false;  // the same memory as the stored version: takes none of its own
  };

  /// What an operator holds beside a version that is read again later, if it takes the operand in another layout: a copy,
  /// as long as it runs. Its node says whether there is one.
  struct OperandCopy {
    OperatorId op;
    std::size_t operand = 0;
    NodeId version_node;
    NodeId node;
    std::shared_ptr<const CopyPositions> positions;
  };

  StrategyProblem problem;
  IdVector<OperatorId, NodeId> operator_nodes;
  IdVector<VersionId, std::optional<NodeId>> version_nodes;  // nothing where another node decides: kProduced, kUpdated
  IdVector<OperatorId, std::shared_ptr<const std::vector<Strategy>>> strategies;
  IdVector<VersionId, std::shared_ptr<const std::vector<VersionChoice>>> choices;  // each version's that has a node
  std::vector<OperandCopy> copies;
  bool candidates_complete = true;
  ProblemTimes times;

  /// What an edge of `build_problem` pays for: what makes a version of the one before it, or brings an operand to its
  /// operator.
  struct Communicated {
    std::optional<VersionId> version;
    Reader reader;  // where there is no version
  };
  IdVector<EdgeId, Communicated> communicated;            // empty where layers are tied
  IdVector<OperatorId, StrategyTableId> operator_tables;  // one run of each operator, by its strategies

  const Strategy& strategy(OperatorId op, const Choice& choice) const;
  const VersionChoice& version_choice(VersionId version, const Choice& choice) const;
};

/// Builds the problem: a node for every operator and for every version whose layout is a choice, of every copy of a layer
/// (`searched_problem` ties them); an edge for every redistribution. Equal operators share their table, equal edges their
/// matrix. Throws InputError if an operator is left without a strategy.
ModelProblem build_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                           RedistributionPlanner& redistributions, const Restrictions& restrictions);

}  // namespace shardplan
