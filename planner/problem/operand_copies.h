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

/// The choices of a node that says whether an operator holds a copy of an operand in addition to the version that it
/// reads: either no copy, with the layout that both have, or a copy of a certain number of bytes. By position in the
/// node's list.
struct CopyPositions {
  std::vector<std::uint32_t> copied;  // by strategy of the operator: the position with a copy
  std::vector<std::optional<std::uint32_t>>
      wanted;  // by strategy of the operator: the position without, if the version has that layout
  std::vector<std::optional<std::uint32_t>>
      offered;  // by strategy of the version's node: the position of its layout without a copy

  std::size_t position(std::size_t of_operator, std::size_t of_version) const;
};

/// The tables of such a node and its two edges. An edge can only compare two nodes, so the copy's node names the
/// common layout, and the operator and the version must both agree to it.
struct CopyTables {
  std::shared_ptr<const CopyPositions>
      positions;  // nothing where there is a copy always: then `usage` is the operator's
  StrategyTableId costs;
  UsageTableId usage;
  MatrixId of_operator;
  MatrixId of_version;
};

/// Tables for equal lists are created once.
class OperandCopies {
 public:
  OperandCopies(const LayoutTables& layouts, StrategyProblem& problem) : layouts_(layouts), problem_(problem) {}

  /// `usage`: bytes of the operand by strategy of the operator. If the version's own memory is released as soon as
  /// the operand exists (`frees`), only operands that share another's memory are without a copy.
  const CopyTables& between(ListId operands, ListId versions, UsageTableId usage, bool frees);

 private:
  CopyTables make(ListId operands, ListId versions, UsageTableId usage, bool frees);

  const LayoutTables& layouts_;
  StrategyProblem& problem_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, bool>, CopyTables> known_;
};

}  // namespace shardplan
