#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/problem/layout_tables.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// The choices of a node that says whether memory is needed for a copy (`ModelProblem::Copy`): either no copy, with the
/// layout that taker and source have in common (if there is a source), or a copy of a certain number of bytes. By
/// position in the node's list, in which those without a copy come first.
struct CopyPositions {
  std::vector<std::uint32_t> copied;                  // by strategy of the taker: the position with a copy
  std::vector<std::optional<std::uint32_t>> wanted;   // by strategy of the taker: that of its layout without a copy
  std::vector<std::optional<std::uint32_t>> offered;  // by strategy of the source: that of its layout without a copy
  std::uint32_t first_copy = 0;                       // number of positions without a copy
  std::uint32_t size = 0;                             // number of positions
  /// Instead of `copied` to `offered`, by strategy of the taker and then of the source: the position.
  std::vector<std::uint32_t> by_pair;
  std::size_t num_sources = 0;  // strategies, for `by_pair`

  std::size_t position(std::size_t of_taker, std::optional<std::size_t> of_source, bool is_beside_copy) const;
  bool is_copy(std::size_t position) const { return position >= first_copy; }
};

/// The tables of such a node and its edges. An edge can only compare two nodes, so the copy's node names the
/// common layout, and taker and source must both agree to it.
struct CopyTables {
  /// Nothing where there is a copy always: then `usage` is the taker's.
  std::shared_ptr<const CopyPositions> positions;
  StrategyTableId costs;
  UsageTableId usage;
  MatrixId of_taker;
  MatrixId of_source;  // if there is a source
};

/// Tables for equal lists are created once.
class CopyNodes {
 public:
  CopyNodes(const LayoutTables& layouts, StrategyProblem& problem) : layouts_(layouts), problem_(problem) {}

  /// `usage`: bytes of the copy by strategy of the taker. If the source's own memory is released as soon as the copy
  /// exists (`frees`), only layouts that share another's memory are without a copy.
  const CopyTables& between(ListId takers, ListId sources, UsageTableId usage, bool frees);

  /// Without a source: what is beside it decides alone whether there is a copy.
  const CopyTables& of_taker_alone(UsageTableId usage);

  /// Of a node that takes a number of bytes for every pair of strategies, or more; `bytes` has a row for each of the
  /// taker's. Its strategies name a group of the taker's with equal rows, and one of the numbers in such a row.
  CopyTables by_pair(const std::vector<Bytes>& bytes, std::size_t takers, std::size_t sources);

  /// Forbids to be without a copy beside a copy: rows are the positions of `other`. Both must outlive this.
  MatrixId copied_beside(const CopyPositions& other, const CopyPositions& positions);

 private:
  CopyTables make(ListId takers, ListId sources, UsageTableId usage, bool frees);
  CopyTables finished(CopyPositions positions, std::vector<Bytes> bytes, std::vector<Bytes> of_copies);
  template <class Allows>
  MatrixId matrix(std::size_t rows, std::uint32_t columns, const Allows& allows);

  const LayoutTables& layouts_;
  StrategyProblem& problem_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, bool>, CopyTables> known_;
  std::map<UsageTableId, CopyTables> alone_;
  std::map<std::pair<const void*, const void*>, MatrixId> beside_;  // never iterated over
};

}  // namespace shardplan
