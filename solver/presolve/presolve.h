#pragma once

#include <optional>

#include "solver/core/core_problem.h"
#include "solver/presolve/reduction_graph.h"
#include "solver/search.h"

namespace shardplan {

/// Reduces a problem to a smaller one of the same least cost, exactly, memory included, and takes choices back:
///
///   parallel edges       added up
///   separable edges      a table f(a) + g(b) goes to the nodes; constant tables vanish
///   dead values          without a partner at some neighbour, or too large for the limits, are removed
///   follower merging     a node whose value is determined by a neighbour's becomes part of the neighbour
///   dominance            a value goes if another of its node costs no more whatever the neighbours do, and uses no
///                        more at any time
///   leaf folding         a node with one neighbour goes if each value of that has one best answer in cost and bytes
///   degree two           a node without memory between two neighbours becomes an edge between them
///   time compression     only times that can bind are kept
///
/// Tables are interned, and the outcome of a rule is remembered by its operands: equal layers are reduced once.
class Presolve {
 public:
  enum class Memory { kKept, kIgnored };

  /// `known_cost`: of a feasible choice, if one is known; dearer choices may be lost. `reduce` false: only what the
  /// core's form requires. Rules are applied in three quarters of the time until `deadline` at most, so that some is left to
  /// search what they came to; if even reading the problem in takes longer than that deadline it looks infeasible, and
  /// not certainly so.
  Presolve(const StrategyProblem& problem, const Objective& objective, const Deadline& deadline,
           std::optional<std::int64_t> known_cost = {}, bool reduce = true, Memory memory = Memory::kKept);

  bool is_infeasible() const { return graph_.is_infeasible(); }
  /// Valid unless infeasible; no nodes if everything is decided.
  const CoreProblem& core() const { return core_; }
  /// Whether every feasible choice costs less than `core().big_m`, so that no cheaper one means that there is none.
  bool is_infeasibility_certain() const { return is_infeasibility_certain_ && graph_.is_infeasibility_certain(); }
  /// Whether doubles hold all costs of the core exactly.
  bool is_exact() const { return is_exact_; }
  /// What a choice costs besides the core's cost.
  std::int64_t constant_cost() const { return graph_.constant_cost(); }
  Choice expand(const CoreChoice& choice) const;
  /// The values that a choice of the original problem gives to the core's nodes; a removed one is replaced by the
  /// cheapest.
  CoreChoice project(const Choice& choice) const;
  const StageStatistics& statistics() const { return statistics_; }

 private:
  void reduce();
  bool drop_dominated();
  bool fold_leaves();
  bool fix_isolated();
  bool remove_between();
  void settle_memory();
  void build_core();

  Deadline rules_deadline_;
  ReductionGraph graph_;
  std::int64_t entry_limit_ = 0;
  std::vector<std::uint32_t> core_nodes_;  // original nodes
  CoreProblem core_;
  bool is_infeasibility_certain_ = true;
  bool is_exact_ = true;
  std::optional<std::int64_t> known_cost_;
  StageStatistics statistics_;
  std::int64_t merged_ = 0, dominated_ = 0, folded_ = 0, removed_between_ = 0;
  Memo<Positions> dominance_, leaves_;
  struct Joined {
    TableRef table;
    Positions best;
  };
  Memo<Joined> joined_;
};

}  // namespace shardplan
