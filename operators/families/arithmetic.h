#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Arithmetic, element by element: functions of one operand (Exp, Log, Sqrt, Rsqrt, Neg, Abs, Erf, Square); of two that
/// broadcast to each other (Add, Sub, Mul, RealDiv, Div, Pow, Maximum, Minimum); AddN of operands shaped alike; and
/// BiasAdd of a vector of channels. A broadcast dimension is not cut on the operand that has it as size 1.
std::vector<OperatorType> arithmetic_operators();

}  // namespace shardplan
