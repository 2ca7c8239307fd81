#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that make or read truth values (dtype bool), element by element and broadcast: Equal, NotEqual, Less,
/// LessEqual, Greater, GreaterEqual of numbers; LogicalAnd, LogicalOr, LogicalNot of truths; Select(condition, x, y),
/// which is x where the condition holds and y elsewhere.
std::vector<OperatorType> comparison_operators();

}  // namespace shardplan
