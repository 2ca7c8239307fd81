#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "solver/core/core_matrix.h"
#include "solver/core/rounded_matrices.h"

namespace shardplan {

/// Stands for the bound of an infeasible problem and the cost of a forbidden value.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One end of an edge as its node sees it.
struct CoreNeighbour {
  std::uint32_t node = 0;  // the other end
  std::uint32_t matrix = 0;
  bool is_row = false;        // this end's values are the rows
  std::uint32_t reverse = 0;  // position in `neighbours` of the other end's entry
};

/// Bytes by value over the times [begin, end).
struct CoreSegment {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t bytes = 0;  // position in `CoreProblem::bytes` of the first value's
};

/// What is left to be searched, flat and immutable. Costs are whole numbers held as doubles (exact below 2^53), bytes
/// are integers. At each time the segments' bytes must add up to at most the limit; the least bytes of each segment are
/// 0. A node's neighbours are ordered by node.
struct CoreProblem {
  std::vector<std::uint32_t> first_value;      // by node, one more at the end: position in `costs`
  std::vector<double> costs;                   // by value, at least 0
  std::vector<std::uint32_t> first_neighbour;  // by node, one more at the end
  std::vector<CoreNeighbour> neighbours;
  std::shared_ptr<const std::vector<CoreMatrix>> matrices;
  std::shared_ptr<const RoundedMatrices> rounded;  // these, if a pass is large
  std::vector<std::uint32_t> first_segment;        // by node, one more at the end
  std::vector<CoreSegment> segments;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> limits;  // by time
  /// The cost of a forbidden pair: more than any feasible choice that is better than the known one. A choice that
  /// costs this much or more is infeasible or not an improvement.
  double big_m = 0;
  std::uint64_t sweep_work = 0;  // entries touched by one pass over all edges

  /// From this much work on a pass is large: its matrices exceed caches.
  static constexpr std::uint64_t kLargePass = 10'000'000;

  /// Of one pass forwards and backwards.
  std::uint64_t pass_work() const { return 2 * sweep_work + segments.size() * 8 + limits.size() * 4; }
  std::size_t num_nodes() const { return first_value.size() - 1; }
  std::size_t num_values(std::size_t node) const { return first_value[node + 1] - first_value[node]; }
  /// The costs of an edge seen from one end: the row of the other end's value, indexed by `other_class`.
  const double* row(const CoreNeighbour& neighbour, std::size_t value) const {
    const CoreMatrix& matrix = (*matrices)[neighbour.matrix];
    return neighbour.is_row ? matrix.forward.data() + std::size_t{matrix.row_class[value]} * matrix.column_classes
                            : matrix.backward.data() + std::size_t{matrix.column_class[value]} * matrix.row_classes;
  }
  const std::uint32_t* other_class(const CoreNeighbour& neighbour) const {
    const CoreMatrix& matrix = (*matrices)[neighbour.matrix];
    return neighbour.is_row ? matrix.column_class.data() : matrix.row_class.data();
  }
  double edge_cost(const CoreNeighbour& neighbour, std::size_t value, std::size_t other_value) const {
    return row(neighbour, value)[other_class(neighbour)[other_value]];
  }
};

/// A value for each node of a core.
using CoreChoice = std::vector<std::uint32_t>;

/// Cost of a choice (at least `big_m` if it contains a forbidden pair) and the sum of the bytes by which limits are
/// exceeded.
struct CoreEvaluation {
  double cost = 0;
  std::int64_t excess = 0;
};
CoreEvaluation evaluate(const CoreProblem& core, const CoreChoice& choice);

/// Links `reverse`, counts `sweep_work` and sets `rounded` if it is not set, once all else is in place.
void finish(CoreProblem& core);

}  // namespace shardplan
