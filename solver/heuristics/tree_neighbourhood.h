#pragma once

#include <vector>

#include "base/random.h"
#include "solver/core/move_state.h"

namespace shardplan {

/// Large moves by dynamic programming: a random tree of nodes (without other edges among them) takes its optimal
/// values given all others, with bytes priced; if limits are violated, the prices at these times are raised and the
/// tree is solved again. Single nodes cannot leave a local optimum in which neighbours must move together; trees of
/// hundreds can.
class TreeNeighbourhood {
 public:
  TreeNeighbourhood(const CoreProblem& core, const std::vector<double>& prices);
  void set_prices(const std::vector<double>& prices);

  /// One move from a random node; keeps it if limits hold and the cost rises by at most `allowance`.
  /// `price_share` is the part of the prices that counts.
  void move(MoveState& state, Random& random, std::size_t size, double price_share, double allowance, WorkMeter& meter);

 private:
  void grow(std::uint32_t root, Random& random, std::size_t size);
  void solve(const MoveState& state, double price_share);
  double local_price(std::size_t begin, std::size_t end) const;

  const CoreProblem* core_;
  std::vector<double> cumulative_;                   // sums of prices
  std::vector<std::uint32_t> tree_, parent_, slot_;  // slot of the parent's entry in the node's neighbours
  std::vector<std::uint32_t> position_;              // in tree_, by node
  std::vector<std::uint32_t> links_;                 // edges to the tree, by node
  std::vector<std::uint32_t> frontier_, touched_;
  std::vector<double> costs_;  // one block for each tree node
  std::vector<std::uint32_t> first_cost_, first_answer_, answers_, chosen_, old_;
  std::vector<double> by_class_;
  std::vector<std::uint32_t> best_of_class_;
  struct Priced {
    std::uint32_t time;
    double price_to_here;  // sum of local prices before and at `time`
  };
  std::vector<Priced> local_;
  std::uint64_t work_ = 0;
};

}  // namespace shardplan
