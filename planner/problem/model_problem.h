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

/// What restricts the candidates of a problem.
struct Restrictions {
  IdVector<OperatorId, SharedVector<Strategy>> operators;  // empty: all that can be enumerated
  IdVector<VersionId, RareValue<TensorLayout>> versions;   // the required layout of a version
  IdVector<VersionId, SharedVector<TensorLayout>> among;   // the allowed layouts of a version; empty: all possible ones
  bool least_contraction_work = false;  // level 0: contractions keep only the strategies with the least repeated work
  std::vector<AxisRef> pieces;          // the mesh's, for enumeration
  UnevenCuts uneven = UnevenCuts::kNone;
  bool counts_copies = false;                    // memory includes `ModelProblem::copies`
  Bytes capacity = 0;                            // at every time
  std::shared_ptr<const RepeatClasses> uniform;  // set: copies of a repeated block take one strategy
};
/// Removes the strategies of a contraction with which several devices repeat work that other strategies avoid.
void keep_least_work(const Operation& operation, std::vector<Strategy>& strategies);
/// No restrictions, with all vectors sized.
Restrictions no_restrictions(const OperatorGraph& graph, const TensorVersions& versions);

/// By time of the schedule: two of the problem's times, the fuller of which holds at least as much. Empty: both have
/// the same times.
using ProblemTimes = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct CopyPositions;  // operand_copies.h

/// The strategy problem of a graph, and what its nodes stand for.
struct ModelProblem {
  struct VersionChoice {
    TensorLayout layout;
    bool shares_stored = false;  // has no memory of its own
  };

  /// A copy that an operator holds while it runs, in addition to a version that is read again later, if it takes the
  /// operand in another layout. Its node says whether there is one.
  struct OperandCopy {
    OperatorId op;
    std::size_t operand = 0;
    NodeId version_node;
    NodeId node;
    std::shared_ptr<const CopyPositions> positions;
  };

  StrategyProblem problem;
  IdVector<OperatorId, NodeId> operator_nodes;
  IdVector<VersionId, std::optional<NodeId>> version_nodes;  // nothing if another node decides: kProduced, kUpdated
  IdVector<OperatorId, std::shared_ptr<const std::vector<Strategy>>> strategies;
  IdVector<VersionId, std::shared_ptr<const std::vector<VersionChoice>>> choices;  // of each version that has a node
  std::vector<OperandCopy> copies;
  bool candidates_complete = true;
  ProblemTimes times;

  /// The communication of an edge of `build_problem`: it produces a version from the previous one, or brings an
  /// operand to its operator.
  struct Communicated {
    std::optional<VersionId> version;
    Reader reader;  // if there is no version
  };
  IdVector<EdgeId, Communicated> communicated;            // empty if layers are tied
  IdVector<OperatorId, StrategyTableId> operator_tables;  // one run of each operator, by strategy

  const Strategy& strategy(OperatorId op, const Choice& choice) const;
  const VersionChoice& version_choice(VersionId version, const Choice& choice) const;
};

/// Builds the problem. Every operator and every version whose layout is a choice becomes a node, separately for each
/// copy of a layer (`searched_problem` ties them); every redistribution becomes an edge. Equal operators share their
/// table, equal edges their matrix. Throws InputError if an operator has no strategy left.
ModelProblem build_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                           RedistributionPlanner& redistributions, const Restrictions& restrictions);

}  // namespace shardplan
