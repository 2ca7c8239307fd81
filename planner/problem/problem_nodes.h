#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "graph/operator_graph.h"
#include "graph/tensor_versions.h"
#include "layouts/tensor_layout.h"
#include "solver/strategy_problem.h"
#include "strategies/strategy.h"

namespace shardplan {

/// By time of the schedule: two of the problem's times, the fuller of which holds at least as much. Empty: both have
/// the same times.
using ProblemTimes = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct CopyPositions;  // copy_nodes.h
using CopyId = Index<struct CopyTag>;

/// The strategy problem of a graph, and what its nodes stand for.
struct ModelProblem {
  struct VersionChoice {
    TensorLayout layout;
    bool shares_stored = false;  // has no memory of its own
  };

  /// Memory that depends on several nodes, and the node that says whether it is taken
  /// (planner/problem/problem_copies.h) or how much it is (planner/problem/running_memory.h).
  struct Copy {
    OperatorId op;                 // the reader, the view, or what produces the tensor
    NodeId taker;                  // has the copy's layout
    std::optional<NodeId> source;  // has the layout that needs no copy
    std::vector<CopyId> beside;    // if one of them is a copy, then this is one as well
    NodeId node;
    std::shared_ptr<const CopyPositions> positions;
  };

  StrategyProblem problem;
  IdVector<OperatorId, NodeId> operator_nodes;
  IdVector<VersionId, std::optional<NodeId>> version_nodes;  // nothing if another node decides: kProduced, kUpdated
  IdVector<OperatorId, std::shared_ptr<const std::vector<Strategy>>> strategies;
  IdVector<VersionId, std::shared_ptr<const std::vector<VersionChoice>>> choices;  // of each version that has a node
  IdVector<CopyId, Copy> copies;                                                   // `beside` comes first
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

  const Strategy& strategy(OperatorId op, const Choice& choice) const {
    return (*strategies[op])[choice.strategy[operator_nodes[op]].value()];
  }
  const VersionChoice& version_choice(VersionId version, const Choice& choice) const {
    return (*choices[version])[choice.strategy[*version_nodes[version]].value()];
  }
};

}  // namespace shardplan
