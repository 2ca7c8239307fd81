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

/// What one mesh axis does to an operator: cuts a factor, carries the summands of a linear (or monotone) group, or
/// nothing.
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
/// phases if a normalised factor is cut), puts the pieces together and adds up what is partial. Shares no code with
/// layouts and mesh. A partial operand is taken apart into unequal summands of both signs. Results that should be equal
/// on several devices and are not are reported in `fault`.
struct ShardedRun {
  std::vector<Values> results;
  std::string fault;
};
ShardedRun run_sharded(const Operation& operation, const std::vector<Values>& operands, const Assignment& assignment,
                       Random& random);

/// The largest difference over the largest value of `expected`; infinite if shapes differ or a value is not a number.
double relative_difference(const Values& expected, const Values& found);

enum class Cuts {
  kEven,        // into pieces of one size
  kSomeUneven,  // at least one factor in pieces of which the last is shorter
};

/// All assignments of the axes that the rule and the sizes allow; at most `limit` of them, drawn evenly.
std::vector<Assignment> legal_assignments(const Operation& operation, const std::vector<std::int64_t>& sizes,
                                          std::size_t limit, Random& random, Cuts cuts = Cuts::kEven);

}  // namespace shardplan
