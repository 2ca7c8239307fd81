#pragma once

#include <string>

#include "operators/operator_type.h"

namespace shardplan {

/// One line per operator that model files may use: name, rule, whether it has a gradient; and the count at the end.
std::string catalogue_report();

/// All that is known of one operator: signature, attributes, rule, partial operands, strategies, gradient.
std::string operator_report(const OperatorType& type);

}  // namespace shardplan
