#include "operators/building/rule_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "operators/operator_type.h"

namespace shardplan {

DimensionWalk RuleBuilder::add(std::string name, std::int64_t size, FactorKind kind) {
  const auto at = static_cast<std::uint32_t>(rule_.factors.size());
  rule_.factors.push_back({std::move(name), size, kind, Reduction::kSum});
  return {{at}, std::nullopt};
}

TensorWalk RuleBuilder::add_named(const std::string& prefix, const Shape& shape, FactorKind kind) {
  TensorWalk walk;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    walk.push_back(shape[d] == 1 ? whole()
                                 : add(shape.size() == 1 ? prefix : prefix + std::to_string(d), shape[d], kind));
  }
  return walk;
}

TensorWalk RuleBuilder::add_positions(const Shape& shape, FactorKind kind) {
  TensorWalk walk;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    walk.push_back(shape[d] == 1 ? whole() : add(position_name(d), shape[d], kind));
  }
  return walk;
}

void RuleBuilder::set_equal_pieces(const DimensionWalk& walk) {
  for (const std::uint32_t factor : walk.factors) rule_.factors[factor].has_equal_pieces = true;
}

void RuleBuilder::set_kind(const DimensionWalk& walk, FactorKind kind, Reduction reduction) {
  for (const std::uint32_t factor : walk.factors) {
    rule_.factors[factor].kind = kind;
    rule_.factors[factor].reduction = reduction;
  }
}

std::string position_name(std::size_t dimension) {
  return dimension < 26 ? std::string(1, static_cast<char>('a' + dimension)) : fmt::format("d{}", dimension);
}

TensorWalk broadcast_walk(const TensorWalk& walk, const Shape& full, const Shape& shape) {
  TensorWalk result;
  const std::size_t skipped = full.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    result.push_back(shape[d] == full[skipped + d] ? walk[skipped + d] : whole());
  }
  return result;
}

DimensionWalk product(const DimensionWalk& major, const DimensionWalk& minor) {
  DimensionWalk result = major;
  result.factors.insert(result.factors.end(), minor.factors.begin(), minor.factors.end());
  return result;
}

TensorWalk concatenate(TensorWalk left, const TensorWalk& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::size_t normal_axis(const Operation& operation, std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) {
    throw InputError(SourcePlace{}, "axis {} of {} is outside [-{}, {})", axis, operation.type->name, size, size);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

std::vector<std::size_t> normal_axes(const Operation& operation, const std::vector<std::int64_t>& axes,
                                     std::size_t rank) {
  std::vector<std::size_t> result;
  for (const std::int64_t axis : axes) result.push_back(normal_axis(operation, axis, rank));
  if (axes.empty()) {
    for (std::size_t axis = 0; axis < rank; ++axis) result.push_back(axis);
  }
  std::ranges::sort(result);
  const auto repeated = std::ranges::adjacent_find(result);
  if (repeated != result.end()) operand_error(operation, fmt::format("axis {} is given twice", *repeated));
  return result;
}

Shape broadcast_shapes(const Operation& operation, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t skipped = longer.size() - shorter.size();
  for (std::size_t d = 0; d < shorter.size(); ++d) {
    std::int64_t& size = result[skipped + d];
    if (size == shorter[d] || shorter[d] == 1) continue;
    if (size != 1) {
      operand_error(operation, fmt::format("shapes {} and {} do not fit: dimension {} is {} and {}", to_string(a),
                                           to_string(b), skipped + d, size, shorter[d]));
    }
    size = shorter[d];
  }
  return result;
}

void operand_error(const Operation& operation, const std::string& text) {
  throw InputError(SourcePlace{}, "{}: {}", operation.type->name, text);
}

void dtype_error(const Operation& operation, DataType one, DataType other) {
  operand_error(operation, fmt::format("inputs are {} and {}; Cast one of them", to_string(one), to_string(other)));
}

void check_shape(const Operation& operation, std::size_t operand, const Shape& wanted) {
  const Shape& found = operation.operands[operand].shape;
  if (found == wanted) return;
  operand_error(operation,
                fmt::format("the shape of {} is {}; expected {}", operation.type->signature.operands[operand],
                            to_string(found), to_string(wanted)));
}

std::int64_t checked_size(const Operation& operation, std::optional<std::int64_t> size) {
  if (!size) operand_error(operation, "the result has more elements than 64 bits can count");
  return *size;
}

}  // namespace shardplan
