#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"
#include "simulator/execute/data.h"

namespace shardplan {

/// The dtype in which simulated devices save their numbers.
inline constexpr char kSimulatedDtype[] = "F64";
std::vector<std::byte> bytes_of_numbers(std::span<const double> numbers);

/// A piece of a checkpoint's tensor as numbers of the simulation. Throws InputError for dtypes that this program does
/// not support, and as `Checkpoint::read`.
TensorValues read_numbers(Checkpoint& checkpoint, std::size_t tensor, const PieceRuns& piece,
                          std::int64_t preferred = 0);

}  // namespace shardplan
