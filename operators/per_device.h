#pragma once

#include <cstdint>
#include <string_view>

#include "operators/operator_type.h"

namespace shardplan {

/// "PerDevice.": the prefix of these types' names.
inline constexpr std::string_view kPerDevice = "PerDevice.";

/// The operator that each of N devices computes separately: what `base` computes for the i-th of each operand, for i
/// below N. Operands and results are those of `base` with an additional first dimension of N, except for the operands
/// at the positions in `shared`, which all devices read alike:
///
///   PerDevice.Conv2D(x [N, b, c, h, w], weight [N, o, c, 3, 3]) -> y [N, b, o, h, w]
///
/// The first dimension is the factor "device", the only one that can be sharded. Its gradient consists of the
/// gradient operators of `base`, each per device as well, and sums those of shared operands over the devices. A
/// random operator draws different numbers on every device.
///
/// The type has the attributes of `base` and "shared". It lives as long as the program.
///
/// The type of that name, "PerDevice.X" or one of the catalogue; null if there is none. Model files cannot name the
/// former.
const OperatorType* find_graph_operator_type(std::string_view name);

}  // namespace shardplan
