#include "solver/bounds/dual_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/core/restricted_core.h"
#include "solver/core/vector_kernels.h"

// The bound of a core by two relaxations. Memory limits are moved into the objective (Lagrangian relaxation): with a
// price per byte at each time, what remains is a pairwise cost problem without side constraints. It is bounded by its
// local polytope, whose dual is solved by message passing: each edge moves costs between its ends until every part of
// the problem can be minimised on its own, and the sum of these minima is the bound. TRW-S (Kolmogorov, IEEE TPAMI
// 28(10), 2006; after Wainwright, Jaakkola, Willsky, IEEE Trans. Inf. Theory 51(11), 2005) sends the messages node by
// node in one order and back, which raises the bound with every pass and needs one message per edge and direction.
//
// A linear programming solver would reach the polytope's bound exactly, but needs a variable for each pair of values:
// the contest's problems have millions of them after presolve, where a pass takes milliseconds. Prices move by a
// subgradient step after each pass instead of after a converged inner problem: as messages are kept, the bound at the
// next prices is nearly as good after one pass.
//
// A message costs classes times classes, not values times values: equal rows of a matrix form one class, since
// redistributions depend on layouts, which many strategies share. Classes, processing four rows at a time, and the
// compiled variants of the loop (core/vector_kernels.h) make a pass fast.
//
// The result must be certain although it is computed in doubles. Any messages are a reparametrisation: the bound is a
// sum of minima of what remains, so an inexact message weakens the bound but does not invalidate it. The rounding error
// of the sums is bounded and subtracted (`rounding_error`).
//
// Limitations: the local polytope is not the convex hull, so cycles leave a gap that no number of passes closes; and
// message passing can get stuck below the polytope's optimum.

namespace shardplan {
namespace {

constexpr double kRemoved = 1e30;  // above every sum of costs, far below the largest double
// Passes without a better bound before steps shorten; fewer as long as the target is so many times the bound that steps
// towards it overshoot.
constexpr int kPatientPasses = 20;
constexpr int kImpatientPasses = 5;
constexpr double kFarTarget = 1.5;
constexpr int kPassesBetween = 1;  // plain passes between those with over-relaxation
constexpr double kReachesFurther = 1.1, kReachesLess = 0.7;
constexpr double kUnit = 0x1p-53;  // largest relative rounding error of an operation
/// Gaps, relative to the cost, that are several times the precision.
constexpr double kNearForHalves = 2e-3, kNearForFloats = 1e-6;

/// A sum that also accumulates the rounding errors (Neumaier, ZAMM 54, 1974): its error is about one unit of the
/// result, however many summands there are.
class CompensatedSum {
 public:
  void add(double value) {
    const double sum = sum_ + value;
    const double added = sum - sum_;
    lost_ += (sum_ - (sum - added)) + (value - added);
    sum_ = sum;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace

DualBound::DualBound(const CoreProblem& core) : core_(&core), best_bound_(-kInfinity) {
  std::size_t size = 0;
  std::size_t widest = 1;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    widest = std::max(widest, core.num_values(node));
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      first_message_.push_back(static_cast<std::uint32_t>(size));
      size += core.num_values(node);
    }
  }
  messages_.assign(size, 0);
  alive_.assign(core.costs.size(), 1);
  min_marginals_.assign(core.costs.size(), 0);
  prices_.assign(core.limits.size(), 0);
  best_prices_ = momentum_ = usage_ = prices_;
  cumulative_.assign(core.limits.size() + 1, 0);
  decoded_.assign(core.num_nodes(), 0);
  in_.resize(widest);
  by_class_.resize(widest);
  out_.resize(widest);
  sum_.resize(widest);
  for (const CoreNeighbour& neighbour : core.neighbours) {
    sum_of_largest_entries_ += (*core.matrices)[neighbour.matrix].largest;
  }
  work_ = core.pass_work();
  if (core.rounded) {
    precision_ = Precision::kHalves;
    in_floats_.resize(widest);
    out_floats_.resize(widest);
  }
  price_values();
}

void DualBound::price_values() {
  const CoreProblem& core = *core_;
  value_costs_ = core.costs;
  CompensatedSum limits_price;
  double sum = 0;
  for (std::size_t time = 0; time < prices_.size(); ++time) {
    cumulative_[time] = sum;
    if (prices_[time] > 0) sum += prices_[time];
    // The price that nodes pay is the difference of rounded sums; the limits must be paid at the same price.
    limits_price.add((sum - cumulative_[time]) * static_cast<double>(core.limits[time]));
  }
  if (!cumulative_.empty()) cumulative_[prices_.size()] = sum;
  limits_price_ = limits_price.value();
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    double* const costs = value_costs_.data() + core.first_value[node];
    const std::size_t count = core.num_values(node);
    int num_priced = 0;
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      const double price = cumulative_[segment.end] - cumulative_[segment.begin];
      if (price <= 0) continue;
      ++num_priced;
      const std::int64_t* const bytes = core.bytes.data() + segment.bytes;
      for (std::size_t value = 0; value < count; ++value) costs[value] += price * static_cast<double>(bytes[value]);
    }
    if (num_priced == 0) continue;
    // The rounding error is subtracted here, where it is a fraction of each value's cost and not of the largest one.
    const double kept = 1 - (num_priced + 8) * kUnit;
    for (std::size_t value = 0; value < count; ++value) costs[value] *= kept;
  }
  for (std::size_t value = 0; value < alive_.size(); ++value) {
    if (!alive_[value]) value_costs_[value] = kRemoved;
  }
}

void DualBound::suit_precision(double cost, double bound) {
  if (cost - bound < kNearForHalves * cost) raise_precision(Precision::kFloats);
  if (cost - bound < kNearForFloats * cost) raise_precision(Precision::kDoubles);
}

void DualBound::set_prices(std::vector<double> prices) {
  prices_ = std::move(prices);
  std::fill(momentum_.begin(), momentum_.end(), 0.0);
  price_values();
}

void DualBound::raise_prices(const std::vector<double>& prices, double bound) {
  raise_bound(bound);
  best_prices_ = prices;
  set_prices(prices);
}

void DualBound::restart_steps(double step) {
  step_ = step;
  stalled_ = 0;
}

void DualBound::forget_best() {
  best_bound_ = -kInfinity;
  best_prices_ = prices_;
  stalled_ = 0;
}

void DualBound::set_alive(std::vector<std::uint8_t> alive) {
  alive_ = std::move(alive);
  price_values();
}

void DualBound::restore(const State& state, std::vector<std::uint8_t> alive) {
  messages_ = state.messages;
  earlier_messages_.clear();
  prices_ = best_prices_ = state.prices;
  best_bound_ = state.bound;
  std::fill(momentum_.begin(), momentum_.end(), 0.0);
  alive_ = std::move(alive);
  price_values();
}

DualBound::State DualBound::restricted_state(const CoreProblem& core, const State& state,
                                             const RestrictedCore& restricted) {
  State result;
  result.prices = state.prices;
  result.bound = state.bound;
  const double* received = state.messages.data();
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    const std::uint32_t begin = restricted.core.first_value[node];
    const std::uint32_t end = restricted.core.first_value[node + 1];
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      for (std::uint32_t value = begin; value < end; ++value) {
        result.messages.push_back(received[restricted.values[value]]);
      }
      received += core.num_values(node);
    }
  }
  return result;
}

bool DualBound::fix_by_reduced_cost(double best_cost, std::vector<std::uint8_t>& alive) const {
  // Costs are integers: a better choice costs at least one less.
  const double allowed = best_cost - 1 - certain_bound();
  bool is_removed = false;
  for (std::size_t value = 0; value < alive.size(); ++value) {
    if (!alive[value] || min_marginals_[value] <= allowed) continue;
    alive[value] = 0;
    is_removed = true;
  }
  return is_removed;
}

/// The sums are those of floats, but certainly no larger than exact ones. Their least addend is taken out first, so that
/// no addend is negative and each rounding error (of an addend and of a sum, up to 2^-24) is a fraction of the sum, or of
/// the smallest floats.
inline void DualBound::min_plus_of_halves(const double* in, std::size_t rows, const Half* matrix, std::size_t columns,
                                          double* out) {
  constexpr double kKept = 1 - 0x1p-22, kSmallest = 0x1p-147;
  const double unit = core_->rounded->unit_of_halves();
  double least = in[0];
  for (std::size_t r = 1; r < rows; ++r) least = in[r] < least ? in[r] : least;
  for (std::size_t r = 0; r < rows; ++r) in_floats_[r] = static_cast<float>((in[r] - least) * (1 / unit));
  min_plus(in_floats_.data(), rows, matrix, columns, out_floats_.data());
  for (std::size_t c = 0; c < columns; ++c) {
    out[c] = least + (static_cast<double>(out_floats_[c]) * kKept - kSmallest) * unit;
  }
}

/// Sends `share` of `sum_` (the costs and messages of `node`) along `slot`; returns what was subtracted from the
/// message to make its minimum zero.
inline double DualBound::message(std::size_t node, std::uint32_t slot, double share) {
  const CoreProblem& core = *core_;
  const CoreNeighbour& neighbour = core.neighbours[slot];
  const CoreMatrix& matrix = (*core.matrices)[neighbour.matrix];
  const std::size_t count = core.num_values(node);
  const std::size_t other_count = core.num_values(neighbour.node);
  const double* const received = messages_.data() + first_message_[slot];
  double* const sent = messages_.data() + first_message_[neighbour.reverse];
  const std::size_t classes = neighbour.is_row ? matrix.row_classes : matrix.column_classes;
  const std::size_t other_classes = neighbour.is_row ? matrix.column_classes : matrix.row_classes;
  const double* in = in_.data();
  for (std::size_t value = 0; value < count; ++value) in_[value] = sum_[value] * share - received[value];
  if (classes < count) {
    const std::uint32_t* const class_of = neighbour.is_row ? matrix.row_class.data() : matrix.column_class.data();
    std::fill(by_class_.begin(), by_class_.begin() + static_cast<std::ptrdiff_t>(classes), kInfinity);
    for (std::size_t value = 0; value < count; ++value) {
      double& least = by_class_[class_of[value]];
      least = in_[value] < least ? in_[value] : least;
    }
    in = by_class_.data();
  }
  double* const out = other_classes < other_count ? out_.data() : sent;
  const auto oriented = [&](const auto& item) { return (neighbour.is_row ? item.forward : item.backward).data(); };
  switch (precision_) {
    case Precision::kHalves:
      min_plus_of_halves(in, classes, oriented(core.rounded->halves()[neighbour.matrix]), other_classes, out);
      break;
    case Precision::kFloats:
      min_plus(in, classes, oriented(core.rounded->floats()[neighbour.matrix]), other_classes, out);
      break;
    case Precision::kDoubles:
      min_plus(in, classes, oriented(matrix), other_classes, out);
      break;
  }
  double least = out[0];
  for (std::size_t c = 1; c < other_classes; ++c) least = out[c] < least ? out[c] : least;
  if (other_classes < other_count) {
    const std::uint32_t* const class_of = neighbour.is_row ? matrix.column_class.data() : matrix.row_class.data();
    for (std::size_t value = 0; value < other_count; ++value) sent[value] = out[class_of[value]] - least;
  } else {
    for (std::size_t value = 0; value < other_count; ++value) sent[value] -= least;
  }
  return least;
}

double DualBound::sweep_forward() {
  const CoreProblem& core = *core_;
  CompensatedSum bound;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    const std::size_t count = core.num_values(node);
    const double* const costs = value_costs_.data() + core.first_value[node];
    const std::uint32_t begin = core.first_neighbour[node];
    const std::uint32_t end = core.first_neighbour[node + 1];
    std::uint32_t middle = begin;
    while (middle < end && core.neighbours[middle].node < node) ++middle;
    double* const sum = sum_.data();
    double* const given = out_.data();
    for (std::size_t value = 0; value < count; ++value) sum[value] = given[value] = costs[value];
    for (std::uint32_t slot = begin; slot < end; ++slot) {
      const double* const received = messages_.data() + first_message_[slot];
      for (std::size_t value = 0; value < count; ++value) sum[value] += received[value];
      if (slot >= middle) {
        for (std::size_t value = 0; value < count; ++value) given[value] += received[value];
        continue;
      }
      const CoreNeighbour& reverse = core.neighbours[core.neighbours[slot].reverse];
      const double* const row = core.row(reverse, decoded_[core.neighbours[slot].node]);
      const std::uint32_t* const class_of = core.other_class(reverse);
      for (std::size_t value = 0; value < count; ++value) given[value] += row[class_of[value]];
    }
    decoded_[node] = static_cast<std::uint32_t>(std::min_element(given, given + count) - given);
    double least = sum[0];
    for (std::size_t value = 1; value < count; ++value) least = sum[value] < least ? sum[value] : least;
    for (std::size_t value = 0; value < count; ++value) sum[value] -= least;
    bound.add(least);
    const double share = 1.0 / static_cast<double>(std::max<std::uint32_t>({middle - begin, end - middle, 1}));
    for (std::uint32_t slot = middle; slot < end; ++slot) bound.add(message(node, slot, share));
  }
  return bound.value() - limits_price_;
}

/// The bound: for node i with T_i = costs and messages minus their minimum, every lower neighbour j and every pair (a,
/// b), share * T_i(a) + E(a, b) - message to j (b) - message from j (a) >= what was subtracted from the message. Summed
/// over all edges, plus the minimum of every node, and since the shares of one node add up to at most one, what was
/// subtracted is a bound.
double DualBound::sweep_backward() {
  const CoreProblem& core = *core_;
  CompensatedSum bound;
  for (std::size_t node = core.num_nodes(); node-- > 0;) {
    const std::size_t count = core.num_values(node);
    const double* const costs = value_costs_.data() + core.first_value[node];
    const std::uint32_t begin = core.first_neighbour[node];
    const std::uint32_t end = core.first_neighbour[node + 1];
    std::uint32_t middle = begin;
    while (middle < end && core.neighbours[middle].node < node) ++middle;
    double* const sum = sum_.data();
    for (std::size_t value = 0; value < count; ++value) sum[value] = costs[value];
    for (std::uint32_t slot = begin; slot < end; ++slot) {
      const double* const received = messages_.data() + first_message_[slot];
      for (std::size_t value = 0; value < count; ++value) sum[value] += received[value];
    }
    double least = sum[0];
    for (std::size_t value = 1; value < count; ++value) least = sum[value] < least ? sum[value] : least;
    if (least >= kRemoved / 2) return kInfinity;  // no value is left
    double* const marginal = min_marginals_.data() + core.first_value[node];
    for (std::size_t value = 0; value < count; ++value) marginal[value] = sum[value] -= least;
    bound.add(least);
    const double share = 1.0 / static_cast<double>(std::max<std::uint32_t>({middle - begin, end - middle, 1}));
    for (std::uint32_t slot = begin; slot < middle; ++slot) bound.add(message(node, slot, share));
  }
  return bound.value() - limits_price_;
}

/// The rounding error of a pass's bound, with d edges at a node, A the largest |costs| + |messages| of its values and E
/// the largest entry of an edge's matrix: node sums have an error of at most d A units, their differences and shares of
/// 6 A, and along each edge sums, differences and minima of 15 A + 3 E, or 20 A + 3 E with halves, where the least
/// addend is taken out and in. Costs of values are already rounded down, and the total sum is compensated; it and the
/// limits' price have errors of some units of themselves.
double DualBound::rounding_error() const {
  const CoreProblem& core = *core_;
  const std::uint32_t units_of_edge = precision_ == Precision::kHalves ? 21 : 16;
  double total = 0;
  double weighted = 0;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    double magnitude = 0;
    const double* const costs = value_costs_.data() + core.first_value[node];
    const std::size_t count = core.num_values(node);
    for (std::size_t value = 0; value < count; ++value) {
      if (costs[value] < kRemoved) magnitude = std::max(magnitude, costs[value]);
    }
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const double* const received = messages_.data() + first_message_[slot];
      double most = 0;
      for (std::size_t value = 0; value < count; ++value) {
        const double size = received[value] < 0 ? -received[value] : received[value];
        most = received[value] < kRemoved / 2 && size > most ? size : most;
      }
      magnitude += most;
    }
    total += magnitude;
    weighted += magnitude * (units_of_edge * (core.first_neighbour[node + 1] - core.first_neighbour[node]) + 8);
  }
  return 1.01 * kUnit * (weighted + 4 * sum_of_largest_entries_ + 4 * total + 16 * limits_price_);
}

double DualBound::pass() {
  ++num_passes_;
  forward_bound_ = sweep_forward();
  bound_ = sweep_backward();
  if (bound_ > best_bound_) {
    bound_ -= rounding_error();
    if (bound_ > best_bound_) {
      best_bound_ = bound_;
      best_prices_ = prices_;
      stalled_ = -1;
    }
  }
  return bound_;
}

// Message passing converges like any first-order method, by small steps in nearly the same direction. As any messages
// are a reparametrisation, steps may be lengthened as long as the bound rises (over-relaxation): 40 such passes raise a
// UNet's bound as far as 96 plain ones.
double DualBound::pass_ahead() {
  const bool is_ahead = earlier_messages_.size() == messages_.size() && ++passes_since_ahead_ > kPassesBetween;
  if (!is_ahead) {
    const double bound = pass();
    if (earlier_messages_.size() != messages_.size()) {
      earlier_messages_ = messages_;
      passes_since_ahead_ = 0;
    }
    return bound;
  }
  passes_since_ahead_ = 0;
  const double before = bound_;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const double present = messages_[i];
    messages_[i] += reach_ * (present - earlier_messages_[i]);
    earlier_messages_[i] = present;  // to return to
  }
  const double bound = pass();
  if (bound < before) {
    messages_ = earlier_messages_;
    reach_ *= kReachesLess;
  } else {
    earlier_messages_ = messages_;
    reach_ *= kReachesFurther;
  }
  return bound;
}

void DualBound::usage_of_decoded() {
  const CoreProblem& core = *core_;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      const double bytes = static_cast<double>(core.bytes[segment.bytes + decoded_[node]]);
      usage_[segment.begin] += bytes;
      if (segment.end < usage_.size()) usage_[segment.end] -= bytes;
    }
  }
}

/// Weights fall with the square of a value's excess cost: similar to exponential weights, but made of exact operations.
void DualBound::usage_of_min_marginals() {
  const CoreProblem& core = *core_;
  const double softness = softness_ * std::max(best_bound_, 1.0);
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    if (core.first_segment[node] == core.first_segment[node + 1]) continue;
    const std::size_t count = core.num_values(node);
    const double* const marginal = min_marginals_.data() + core.first_value[node];
    double total = 0;
    for (std::size_t value = 0; value < count; ++value) {
      const double root = softness / (softness + marginal[value]);
      total += in_[value] = root * root;
    }
    for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
      const CoreSegment& segment = core.segments[at];
      double bytes = 0;
      for (std::size_t value = 0; value < count; ++value)
        bytes += in_[value] * static_cast<double>(core.bytes[segment.bytes + value]);
      bytes /= total;
      usage_[segment.begin] += bytes;
      if (segment.end < usage_.size()) usage_[segment.end] -= bytes;
    }
  }
}

void DualBound::move_prices(double target, const Steps& steps) {
  if (prices_.empty()) return;
  std::fill(usage_.begin(), usage_.end(), 0.0);
  if (steps.subgradient == Subgradient::kDecoded) {
    usage_of_decoded();
  } else {
    usage_of_min_marginals();
  }
  double bytes = 0;
  double norm = 0;
  for (std::size_t time = 0; time < prices_.size(); ++time) {
    bytes += usage_[time];
    const double excess = bytes - static_cast<double>(core_->limits[time]);
    momentum_[time] = steps.momentum * momentum_[time] + (1 - steps.momentum) * excess;
    if (prices_[time] > 0 || momentum_[time] > 0) norm += excess * excess;
  }
  if (norm <= 0) return;
  const double size = step_ * std::max(target - bound_, 1e-9 * std::abs(target)) / norm;
  for (std::size_t time = 0; time < prices_.size(); ++time) {
    prices_[time] = std::max(prices_[time] + size * momentum_[time], 0.0);
  }
  price_values();
}

double DualBound::iterate(double target, const Steps& steps) {
  if (settling_ > 0 && --settling_ > 0) return pass_ahead();
  const double bound = pass();
  if (bound == kInfinity) return bound;
  if (++stalled_ >= (target > kFarTarget * best_bound_ ? kImpatientPasses : kPatientPasses)) {
    stalled_ = 0;
    step_ *= 0.7;
    softness_ = std::max(softness_ * 0.8, 1e-9);
    set_prices(best_prices_);
    settling_ = steps.settling;
    earlier_messages_.clear();
    return bound;
  }
  move_prices(target, steps);
  return bound;
}

}  // namespace shardplan
