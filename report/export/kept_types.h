#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The types of summed gradients and of moments. Empty if there are none of this kind, or several types.
struct KeptTypes {
  std::optional<DataType> gradients, moments;
  std::optional<DataType> narrow_weights;  // their 2-byte type, if they are updated without a master copy
  std::vector<std::string> differences;    // "gradients are kept as f32 and bf16"
};

KeptTypes kept_types(const OperatorGraph& graph);

/// Whether it is a type of less than 4 bytes.
bool is_short(const std::optional<DataType>& type);

/// The two-byte type in which most gradients are reduced that are kept in a wider one; nothing if they are reduced as
/// they are kept.
std::optional<DataType> short_sums(const Plan& plan, const KeptTypes& kept);

}  // namespace shardplan
