#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/operation.h"
#include "operators/sharding_rule.h"

namespace shardplan {

/// Makes a `ShardingRule` factor by factor. Two ways of naming: by role (m, k, n; b0, b1), and by position (a, b, c,
/// ... for dimension 0, 1, 2, ... of the widest tensor), which elementwise operators, reductions, norms and the phases
/// of all these share, so that a phase's factors have the names of the whole operator's.
class RuleBuilder {
 public:
  /// A factor, and the walk of a dimension that is just it.
  DimensionWalk add(std::string name, std::int64_t size, FactorKind kind = FactorKind::kPassThrough);
  /// A walk of each dimension of `shape`, named `prefix` (followed by 0, 1, ... if there are several); of size 1:
  /// nothing.
  TensorWalk add_named(const std::string& prefix, const Shape& shape, FactorKind kind = FactorKind::kPassThrough);
  /// The same, named by position.
  TensorWalk add_positions(const Shape& shape, FactorKind kind = FactorKind::kPassThrough);
  /// What the dimensions of a walk are cut as; for dimensions that walk plain factors.
  void set_kind(const DimensionWalk& walk, FactorKind kind, Reduction reduction = Reduction::kSum);

  /// Cuts only where all pieces are equal.
  void set_equal_pieces(const DimensionWalk& walk);

  void operand(TensorWalk walk) { rule_.operands.push_back(std::move(walk)); }
  void result(TensorWalk walk) { rule_.results.push_back(std::move(walk)); }
  ShardingRule build() { return std::move(rule_); }

 private:
  ShardingRule rule_;
};

/// "a", "b", ..., "z", "d26", ...
std::string position_name(std::size_t dimension);

/// How an operand of `shape`, right-aligned with a tensor of `full` that walks `walk`, walks: nothing where it is
/// broadcast.
TensorWalk broadcast_walk(const TensorWalk& walk, const Shape& full, const Shape& shape);

/// Concatenated walks.
DimensionWalk product(const DimensionWalk& major, const DimensionWalk& minor);
TensorWalk concatenate(TensorWalk left, const TensorWalk& right);

/// A dimension that is always whole.
inline DimensionWalk whole() { return {}; }

/// One step of checked axis arithmetic for inference: `axis` counted from 0, or
/// InputError "axis 4 of Softmax is outside [-3, 3)".
std::size_t normal_axis(const Operation& operation, std::int64_t axis, std::size_t rank);
/// Sorted and without repeats; all axes if the attribute is empty.
std::vector<std::size_t> normal_axes(const Operation& operation, const std::vector<std::int64_t>& axes,
                                     std::size_t rank);

/// numpy's broadcasting of two shapes; InputError if they do not fit.
Shape broadcast_shapes(const Operation& operation, const Shape& a, const Shape& b);

/// Throws InputError "OPERATOR: text".
[[noreturn]] void operand_error(const Operation& operation, const std::string& text);
/// The same where two operands have to have one dtype.
[[noreturn]] void dtype_error(const Operation& operation, DataType one, DataType other);

/// InputError unless the operand has the shape that the others ask for.
void check_shape(const Operation& operation, std::size_t operand, const Shape& wanted);

/// The size of a dimension that several together make; InputError if it was too large to count.
std::int64_t checked_size(const Operation& operation, std::optional<std::int64_t> size);

}  // namespace shardplan
