#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "solver/core/core_problem.h"
#include "solver/core/work_meter.h"
#include "solver/interned.h"

namespace shardplan {

/// Exact dynamic programming over a core without memory limits: nodes are eliminated one after the other, each
/// replaced by a table over its remaining neighbours (Bertele and Brioschi, Nonserial Dynamic Programming, 1972).
///
///     a - b - c      eliminating b:  t(a, c) = min over b of cost(b) + ab(a, b) + bc(b, c)
///
/// A table distinguishes values of a neighbour only as far as its matrices do: redistributions depend on layouts, and
/// the 64 strategies of an operator may have only 8 layouts at one side. So the dimension of a node in a table is a
/// *partition* of its values, the coarsest that separates what must be separated, and a layer whose forward and
/// backward operators must be sharded together has tables of 8^4 entries instead of 64^4.
///
/// Tables are interned with their least entry subtracted, and a step is memoised by its operands. So equal layers are
/// eliminated only once. If they are eliminated one after the other, tables repeat after a few layers, since the best
/// far-away choice does not depend on the choice here. 960 layers take hardly longer than 12.
class Elimination {
 public:
  /// Plans an order: smallest table first.
  explicit Elimination(const CoreProblem& core);

  /// Whether the tables of the order stay small enough.
  bool is_possible() const { return is_possible_; }
  std::size_t largest_table() const { return largest_table_; }
  /// An estimate of the work of a run in which equal steps are done once.
  double work() const { return work_; }

  struct Outcome {
    double cost = 0;  // exact if all sums are whole numbers below 2^53
    CoreChoice choice;
    std::size_t entries = 0;  // in all tables that were created
    std::size_t repeated_steps = 0;
  };
  /// The cheapest choice if values have the costs `costs` (as `CoreProblem::costs`, at least 0) instead of the core's
  /// own; nothing if the work limit was reached or tables filled the memory allowed for them. Requires is_possible().
  std::optional<Outcome> run(const std::vector<double>& costs, WorkMeter& meter) const;

 private:
  /// Partitions of values, by number; equal ones share a number. Classes are numbered by their first value.
  class Partitions {
   public:
    std::uint32_t intern(const std::vector<std::uint32_t>& class_of);
    std::uint32_t join(std::uint32_t a, std::uint32_t b);
    std::size_t size(std::uint32_t id) const { return sizes_[id]; }
    const std::vector<std::uint32_t>& class_of(std::uint32_t id) const { return classes_[id]; }

   private:
    NumberedPool<std::vector<std::uint32_t>> classes_;
    std::vector<std::size_t> sizes_;                                          // by number
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> joins_;  // never iterated over
  };
  struct Dimension {
    std::uint32_t node = 0;
    std::uint32_t partition = 0;
  };
  using Scope = std::vector<Dimension>;  // the last one fastest
  /// A matrix of the core, or the table of an earlier step.
  struct Factor {
    bool is_matrix = false;
    std::uint32_t origin = 0;
    Scope scope;
  };
  struct Step {
    Dimension gone;
    Scope scope;                  // the next table's
    std::vector<Factor> factors;  // that go
  };
  class Tables;

  std::vector<std::uint32_t> order();
  void plan_steps(const std::vector<std::uint32_t>& order);

  const CoreProblem* core_;
  Partitions partitions_;
  std::vector<std::uint32_t> slot_partition_;  // by slot of `neighbours`: what its matrix distinguishes at this end
  std::vector<Step> steps_;
  bool is_possible_ = true;
  std::size_t largest_table_ = 0;
  double work_ = 0;
};

}  // namespace shardplan
