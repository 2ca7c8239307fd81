#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oracle.h"

namespace shardplan {

/// An operand of a case: what is drawn for it.
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

/// One instance of an operator, of random small sizes.
struct OperatorCase {
  std::string type;
  Attributes attributes;
  std::vector<OperandSpec> operands;
};

/// For every operator of the catalogue (but for phases, which run inside others) one or more makers of instances.
struct CaseMaker {
  std::string name;
  std::function<OperatorCase(Random&)> make;
};
const std::vector<CaseMaker>& case_makers();

Operation operation_of(const OperatorCase& example, DataType dtype = DataType::kF64);
std::vector<Values> draw_operands(const OperatorCase& example, Random& random);

}  // namespace shardplan
