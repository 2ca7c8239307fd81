#pragma once

#include <vector>

#include "base/random.h"
#include "solver/bounds/dual_bound.h"
#include "solver/core/move_state.h"

namespace shardplan {

/// The part of a core that remains if all nodes but some are fixed: a core of its own, over the times at which the
/// free nodes' bytes change. It shares the matrices.
struct CoreBlock {
  CoreProblem core;
  std::vector<std::uint32_t> nodes;  // numbered as in the whole core
  std::vector<double> prices;        // by the block's times: the sum of the full core's prices there
};
CoreBlock cut_block(const MoveState& state, const std::vector<std::uint32_t>& nodes, const std::vector<double>& prices);

/// The most effective large moves late in a search: a block of tens to hundreds of nodes is bounded, dived into and
/// repaired as a separate problem.
class BlockNeighbourhood {
 public:
  explicit BlockNeighbourhood(const CoreProblem& core);

  /// Frees a random block of about `size` nodes, alternating between balls of neighbours and stretches of the program;
  /// improves it if it can. True if the cost fell.
  bool move(MoveState& state, Random& random, std::size_t size, const std::vector<double>& prices, WorkMeter& meter);

  std::uint64_t num_blocks() const { return num_blocks_; }
  std::uint64_t num_proven() const { return num_proven_; }

 private:
  std::vector<std::uint32_t> ball(std::uint32_t centre, Random& random, std::size_t size);

  const CoreProblem* core_;
  std::vector<std::uint8_t> is_in_;
  std::uint64_t num_blocks_ = 0;
  std::uint64_t num_proven_ = 0;
};

}  // namespace shardplan
