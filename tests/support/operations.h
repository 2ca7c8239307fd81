#pragma once

#include <string>
#include <vector>

#include "operators/catalogue.h"
#include "operators/operator_type.h"

namespace shardplan {

/// The operator on operands of these shapes, all of one type.
inline Operation operation_of(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes,
                              DataType dtype = DataType::kF32) {
  std::vector<TensorType> operands;
  for (const Shape& shape : shapes) operands.push_back({shape, dtype});
  return make_operation(*find_operator_type(type), attributes, operands);
}

}  // namespace shardplan
