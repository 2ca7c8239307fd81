#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Sums of products, by one kernel for all:
///
///   MatMul, BatchMatMul   [.., m, k] times [.., k, n], each also transposed, leading dimensions broadcast as numpy does
///   Einsum                "bsh,hf->bsf" of one or two operands; every index at most once per operand
///
/// All operands are of one dtype; InputError otherwise, or if the summed dimensions differ.
std::vector<OperatorType> contraction_operators();

}  // namespace shardplan
