#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Parts of a tensor: Slice by begin and size, StridedSlice by begin, end and strides. SliceGrad puts a slice's gradient
/// back among zeros.
std::vector<OperatorType> slicing_operators();

}  // namespace shardplan
