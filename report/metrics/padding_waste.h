#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The cost of a model's padding on one device (graph/pad.h).
struct PaddingWaste {
  Bytes at_peak = 0;      // padding in the tensors alive at the memory peak
  Picoseconds masks = 0;  // per step: all MaskPadding
};

PaddingWaste padding_waste(const Plan& plan);

/// The summary's line: "V 50304 (50257 + 47 padding), 1.2 MiB of the peak, masks take 1.2 ms". Empty if nothing is padded.
std::string padding_line(const Plan& plan);

/// The padded dimensions of an operator's operands and results: "dimension 2 of head is 50304 (50257 + 47 padding)".
std::vector<std::string> padded_dimensions(const Plan& plan, OperatorId op);

}  // namespace shardplan
