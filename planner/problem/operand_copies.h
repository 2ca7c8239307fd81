#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/problem/layout_tables.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// The choices of a node that says whether an operator holds a copy of an operand beside the version that it reads, by
/// position: none, of a layout that both have, or one, of so many bytes.
struct CopyPositions {
  std::vector<std::uint32_t> copied;                  // by strategy of the operator: a copy
  std::vector<std::optional<std::uint32_t>> wanted;   // by strategy of the operator: none, if the version is so
  std::vector<std::optional<std::uint32_t>> offered;  // by strategy of the version's node: the layout without a copy

  std::size_t position(std::size_t of_operator, std::size_t of_version) const;
};

/// What such a node and its two edges look like. Whether two layouts are equal is said by edges between two nodes each: the
/// copy's node names the layout, and the operator and the version both have to agree to it.
struct CopyTables {
  std::shared_ptr<const CopyPositions>
      positions;  // nothing where there is a copy always: then `usage` is the operator's
  StrategyTableId costs;
  UsageTableId usage;
  MatrixId of_operator;
  MatrixId of_version;
};

/// The tables of equal lists are made once.
class OperandCopies {
 public:
  OperandCopies(const LayoutTables& layouts, StrategyProblem& problem) : layouts_(layouts), problem_(problem) {}

  /// `usage`: bytes of the operand by strategy of the operator. If the version's own memory is free as soon as the operand is
  /// there (`frees`), only what shares another's memory is without a copy.
  const CopyTables& between(ListId operands, ListId versions, UsageTableId usage, bool frees);

 private:
  CopyTables make(ListId operands, ListId versions, UsageTableId usage, bool frees);

  const LayoutTables& layouts_;
  StrategyProblem& problem_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, bool>, CopyTables> known_;
};

}  // namespace shardplan
