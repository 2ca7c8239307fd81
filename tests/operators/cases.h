#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/oracle.h"

namespace shardplan {

/// An operand of a case, and how its values are drawn.
struct OperandSpec {
  Shape shape;
  double low = -1;
  double high = 1;
  bool is_index = false;  // integers in [low, high)
  bool is_flag = false;   // bool
};
inline OperandSpec real(Shape shape) { return {std::move(shape)}; }
inline OperandSpec positive(Shape shape) { return {std::move(shape), 0.5, 2}; }
inline OperandSpec index(Shape shape, std::int64_t extent) {
  return {std::move(shape), 0, static_cast<double>(extent), true, false};
}
inline OperandSpec truth(Shape shape) { return {std::move(shape), 0, 2, false, true}; }

/// One instance of an operator, with random small sizes.
struct OperatorCase {
  std::string type;
  Attributes attributes;
  std::vector<OperandSpec> operands;
};

/// Makes instances of one operator; its name begins with the operator's.
struct CaseMaker {
  std::string name;
  std::function<OperatorCase(Random&)> make;
};

/// All makers; those of each family are in families/<family>_test.cc. Each operator of the catalogue (except phases,
/// which run inside others) has at least one; the tests of sharding, gradients and rules take their instances from
/// here.
const std::vector<CaseMaker>& case_makers();
/// A maker's own stream of random numbers, independent of the other makers.
Random random_of(const CaseMaker& maker, std::uint64_t seed);

Operation operation_of(const OperatorCase& example, DataType dtype = DataType::kF64);
/// The phases with every factor unsharded.
Phases whole_phases(const Operation& operation);
std::vector<Values> draw_operands(const OperatorCase& example, Random& random);

// ---- sizes

using List = std::vector<std::int64_t>;

std::int64_t any_of(Random& random, const List& sizes);
/// A size that two, four or eight devices can divide, or that three cannot.
std::int64_t some(Random& random);
/// A shape of such sizes.
Shape random_shape(Random& random, std::size_t rank);
/// [n, c, h, w], small.
Shape random_images(Random& random);
/// Two shapes that broadcast to each other, in one of five ways.
std::pair<Shape, Shape> broadcast_pair(Random& random);
/// An attribute's value.
inline std::int64_t whole_number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

/// Adds one maker.
inline void add_case(std::vector<CaseMaker>& cases, std::string name, std::function<OperatorCase(Random&)> make) {
  cases.push_back({std::move(name), std::move(make)});
}

}  // namespace shardplan
