#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "operators/operator_type.h"

namespace shardplan {

/// A whole tensor, row-major.
struct Values {
  Shape shape;
  std::vector<double> data;
};

Values make_values(const Shape& shape, const std::function<double()>& draw);

/// One device: the whole box.
std::vector<Values> run_whole(const Operation& operation, const std::vector<Values>& operands, std::uint64_t seed = 7);

/// What one mesh axis does to an operator: it shards a factor, carries the summands of a linear (or monotone) group, or
/// does nothing.
struct AxisUse {
  enum class Kind { kNothing, kFactor, kLinear, kMonotoneMax, kMonotoneMin };
  Kind kind = Kind::kNothing;
  std::string factor;     // of kFactor
  std::size_t group = 0;  // of the others
};
/// The axes of a mesh, major to minor, and what each does.
struct Assignment {
  std::vector<std::int64_t> sizes;
  std::vector<AxisUse> uses;

  std::string text() const;
};

/// Runs the operator on every device of the mesh: slices the operands by the boxes of each device, runs the kernel (in
/// phases if a normalised factor is sharded), assembles the pieces and adds up partial results. Shares no code with
/// layouts and mesh. A partial operand is split into unequal summands of both signs. If results that should be equal on
/// several devices are not, `fault` says so.
struct ShardedRun {
  std::vector<Values> results;
  std::string fault;
};
ShardedRun run_sharded(const Operation& operation, const std::vector<Values>& operands, const Assignment& assignment,
                       Random& random);

/// The largest difference divided by the largest value of `expected`; infinite if shapes differ or a value is NaN.
double relative_difference(const Values& expected, const Values& found);

enum class Cuts {
  kEven,        // into pieces of equal size
  kSomeUneven,  // at least one factor into pieces of which the last is shorter
};

/// All assignments of the axes that the rule and the sizes allow; at most `limit` of them, evenly sampled.
std::vector<Assignment> legal_assignments(const Operation& operation, const std::vector<std::int64_t>& sizes,
                                          std::size_t limit, Random& random, Cuts cuts = Cuts::kEven);

}  // namespace shardplan
