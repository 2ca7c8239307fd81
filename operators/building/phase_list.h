#pragma once

#include <string_view>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// One phase of an operator, as a line: "mean = ReduceMean(x)", "exp, sum = SoftmaxExp(x, max)".
struct PhaseLine {
  std::string_view text;
  Attributes attributes = {};
};

/// The phases that the lines say, in order. What a line reads are operands of the operation, by the names of its
/// signature, or results of lines above; of two values with one name the later one is meant. The operation's results are
/// the values with their names.
Phases make_phases(const Operation& operation, const std::vector<PhaseLine>& lines);

}  // namespace shardplan
