#pragma once

#include <string>

#include "operators/operator_type.h"

namespace shardplan {

/// One line per operator that model files may use: name, rule, whether it has a gradient; and the count at the end.
std::string catalogue_report();

/// One operator, or the expansion of a built-in block ("nn.Dense"). For an unknown name throws InputError with the
/// nearest known one.
std::string catalogue_report(const std::string& name);

/// The full description of one operator: signature, attributes, rule, partial operands, strategies, gradient.
std::string operator_report(const OperatorType& type);

}  // namespace shardplan
