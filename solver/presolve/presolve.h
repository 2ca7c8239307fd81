#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/core/core_problem.h"
#include "solver/presolve/reduction_graph.h"
#include "solver/stage_statistics.h"

namespace shardplan {

/// Reduces a problem to a smaller one of the same least cost, exactly, memory included, and takes choices back. One file
/// a rule:
///
///   parallel edges       reduction_graph     tables between the same two nodes are added up
///   separable edges      edge_normal_form    a table f(a) + g(b) goes to the nodes, constant tables vanish
///   dead values          edge_normal_form    a value without a partner at some neighbour goes
///   too large values     reduction_memory    a value that does not fit even if all others take their least goes
///   follower merging     follower_merging    a node whose value a neighbour's determines becomes part of the neighbour
///   dominance            dominance           a value goes if another of its node is never worse in cost and in bytes
///   leaf folding         leaf_folding        a node with one neighbour goes if each value of that has one best answer
///   isolated nodes       isolated_nodes      a node without edges takes its cheapest value if that is its smallest, too
///   degree two           degree_two          a node without memory between two neighbours becomes an edge between them
///   time compression     time_compression    only times that can bind are kept
///
/// Tables are interned, and the outcome of a rule is remembered by its operands: equal layers are reduced once.
class Presolve {
 public:
  enum class Memory { kKept, kIgnored };

  /// `known_cost`: of a feasible choice, if one is known; more expensive choices may be lost. `reduce` false: only what
  /// the core's form requires. Rules are applied in half of the time until `deadline` at most, so that enough is left to
  /// build the core and to search it; if the core is not complete at that deadline it looks infeasible, and not certainly
  /// so.
  Presolve(const StrategyProblem& problem, const Objective& objective, const Deadline& deadline,
           std::optional<std::int64_t> known_cost = {}, bool reduce = true, Memory memory = Memory::kKept);

  bool is_infeasible() const { return graph_.is_infeasible(); }
  /// Valid unless infeasible; no nodes if everything is decided.
  const CoreProblem& core() const { return core_; }
  /// Whether every feasible choice costs less than `core().big_m`, so that no cheaper one means that there is none.
  bool is_infeasibility_certain() const { return is_infeasibility_certain_ && graph_.is_infeasibility_certain(); }
  /// Whether doubles hold all costs of the core exactly.
  bool is_exact() const { return core_.big_m < 0x1p53; }
  /// What a choice costs besides the core's cost.
  std::int64_t constant_cost() const { return graph_.constant_cost(); }
  Choice expand(const CoreChoice& choice) const;
  /// The values that a choice of the original problem gives to the core's nodes; a removed one is replaced by the
  /// cheapest.
  CoreChoice project(const Choice& choice) const;
  const StageStatistics& statistics() const { return statistics_; }

 private:
  void reduce(const Deadline& deadline);
  void settle_memory(const Deadline& deadline);

  ReductionGraph graph_;
  CoreProblem core_;
  std::vector<std::uint32_t> core_nodes_;  // original nodes
  bool is_infeasibility_certain_ = true;
  std::size_t merged_ = 0, dominated_ = 0, folded_ = 0, joined_ = 0;
  StageStatistics statistics_;
};

}  // namespace shardplan
