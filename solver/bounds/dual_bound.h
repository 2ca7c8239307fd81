#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "solver/core/core_problem.h"
#include "solver/core/restricted_core.h"

namespace shardplan {

/// A lower bound on a core's cost. Memory limits are priced (Lagrange): with a price for a byte at each time, a choice
/// costs its own cost plus the price of its bytes less the price of the limits, which is no more for feasible choices.
/// What remains is bounded by sequential tree-reweighted message passing (TRW-S: Kolmogorov, IEEE TPAMI 28(10), 2006):
/// nodes in order send messages along edges forwards, then backwards; at given prices the bound does not fall. Prices
/// follow the bytes of a decoded choice (subgradient, step by Polyak's rule). Units are the core's: picoseconds of the
/// objective as doubles, prices per byte.
///
/// The bound is certified: every pass yields a reparametrisation of the problem whatever the messages were, and what
/// rounding can have added (a few units in the last place of what each node adds up) is taken off; see `rounding_error`.
/// Large passes wait for memory, so they read the matrices with no more precision than the gap asks for, rounded down: at
/// first as halves, in a third of the time. The bound is then one of a problem that costs a little less.
class DualBound {
 public:
  enum class Subgradient { kDecoded, kMinMarginals };
  /// How prices are updated: after which choice's bytes, and with how much momentum. No setting suits all problems; a
  /// search runs several and shares the best prices.
  struct Steps {
    Subgradient subgradient = Subgradient::kDecoded;
    double momentum = 0.8;
    int settling = 0;  // passes at the best prices after each return to them
  };

  /// As in `RoundedMatrices`; doubles are exact.
  enum class Precision { kHalves, kFloats, kDoubles };

  explicit DualBound(const CoreProblem& core);

  /// One pass forwards and backwards. Returns the bound at the current prices; infinity if a node has no value left.
  double pass();
  /// The same at constant prices, with over-shooting where messages keep moving in one direction: every second pass
  /// starts from messages extrapolated in that direction. If this lowers the bound, the next pass starts where this
  /// one should have.
  double pass_ahead();
  /// Updates prices after a pass; `target` is the value that the bound is expected not to exceed (the best known
  /// cost).
  void move_prices(double target, const Steps& steps);
  /// `pass` and `move_prices` with the usual schedule: shorter steps and a return to the best prices if the bound
  /// does not rise.
  double iterate(double target, const Steps& steps);

  Precision precision() const { return precision_; }
  /// From now on entries have at least this precision.
  void raise_precision(Precision precision) { precision_ = std::max(precision_, precision); }
  /// From now on they have one that does not matter yet for a bound that is so near this cost.
  void suit_precision(double cost, double bound);

  double best_bound() const { return best_bound_; }
  /// The bound to which `reduced_cost` is added: that of the last pass's forward half (reduced costs are read on the
  /// way back, at each node before the pass has reached its end), with rounding subtracted twice, for itself and for
  /// the reduced costs.
  double certain_bound() const { return std::min(forward_bound_, bound_) - 2 * rounding_error(); }
  const std::vector<double>& best_prices() const { return best_prices_; }
  const std::vector<double>& prices() const { return prices_; }
  void set_prices(std::vector<double> prices);
  /// A bound on this problem known from elsewhere.
  void raise_bound(double bound) { best_bound_ = bound > best_bound_ ? bound : best_bound_; }
  /// Continues from the prices of another bound that is better.
  void raise_prices(const std::vector<double>& prices, double bound);
  void restart_steps(double step = 1);
  /// Forgets the best bound and starts from the current prices, after values were removed.
  void forget_best();
  double step() const { return step_; }
  bool has_converged() const { return step_ < 1e-4; }

  /// The choice made in the last forward pass: at each node the cheapest value given the nodes before it and the
  /// messages from those after it.
  const CoreChoice& decoded() const { return decoded_; }

  /// After a pass: the least by which the bound rises if this value is taken: the value's min-marginal minus the
  /// node's minimum.
  double reduced_cost(std::size_t node, std::size_t value) const {
    return min_marginals_[core_->first_value[node] + value];
  }
  /// Reduced-cost fixing: clears those entries of `alive` (by value) that are in no choice cheaper than `best_cost`,
  /// because `certain_bound` plus their reduced cost exceeds it. True if there were any.
  bool fix_by_reduced_cost(double best_cost, std::vector<std::uint8_t>& alive) const;

  /// The price of a value's bytes at the current prices.
  double price_of_bytes(std::size_t node, std::size_t value) const {
    const std::size_t at = core_->first_value[node] + value;
    return value_costs_[at] - core_->costs[at];
  }

  /// The message of the edge at this position in `neighbours` to the values of its node.
  const double* message(std::size_t slot) const { return messages_.data() + first_message_[slot]; }

  bool is_alive(std::size_t node, std::size_t value) const { return alive_[core_->first_value[node] + value] != 0; }
  void set_alive(std::vector<std::uint8_t> alive);
  const std::vector<std::uint8_t>& alive() const { return alive_; }

  /// Everything that changes from pass to pass, to continue later from the same state.
  struct State {
    std::vector<double> messages, prices;
    double bound;
  };
  State state() const { return {messages_, best_prices_, best_bound_}; }
  /// The same state for a bound of the restricted core.
  State restricted_state(const RestrictedCore& restricted) const {
    return restricted_state(*core_, state(), restricted);
  }
  static State restricted_state(const CoreProblem& core, const State& state, const RestrictedCore& restricted);
  void restore(const State& state, std::vector<std::uint8_t> alive);

  std::uint64_t work_per_pass() const { return work_; }
  std::uint64_t num_passes() const { return num_passes_; }

 private:
  static constexpr double kFirstReach = 2;

  void price_values();
  double sweep_forward();
  double sweep_backward();
  double rounding_error() const;
  double message(std::size_t node, std::uint32_t slot, double share);
  void min_plus_of_halves(const double* in, std::size_t rows, const Half* matrix, std::size_t columns, double* out);
  void usage_of_decoded();
  void usage_of_min_marginals();

  const CoreProblem* core_;
  Precision precision_ = Precision::kDoubles;
  std::vector<std::uint32_t> first_message_;  // by slot (position in neighbours)
  std::vector<double> messages_;              // into each node, one block per slot
  std::vector<double> earlier_messages_;      // after the last extrapolated pass; empty: extrapolation starts now
  std::vector<double> value_costs_;           // with prices; huge for removed values
  std::vector<double> min_marginals_;
  std::vector<std::uint8_t> alive_;
  std::vector<double> prices_, best_prices_, cumulative_, momentum_, usage_;
  double limits_price_ = 0;
  CoreChoice decoded_;
  std::vector<double> in_, by_class_, out_, sum_;  // scratch
  std::vector<float> in_floats_, out_floats_;
  double sum_of_largest_entries_ = 0;  // over all ends of edges
  double bound_ = 0;
  double forward_bound_ = 0;
  double best_bound_;
  double step_ = 1;
  double softness_ = 1e-6;
  int stalled_ = 0;
  int settling_ = 0;  // passes left at constant prices
  int passes_since_ahead_ = 0;
  double reach_ = kFirstReach;  // how far a pass extrapolates, in steps from the earlier messages to the current ones
  std::uint64_t work_ = 0;
  std::uint64_t num_passes_ = 0;
};

}  // namespace shardplan
