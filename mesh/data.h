#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// One global tensor's numbers, row-major, whatever the dtype.
using TensorValues = std::vector<double>;

/// Numbers from here on (masks: -1e9) stand for infinity. They must not hide what stands beside them, so they do not
/// count as the largest of a tensor and are compared relative to themselves.
inline constexpr double kStandsForInfinity = 1e8;

/// How the numbers of a run are held: as they are, or rounded to float after every instruction (integers are left
/// alone).
enum class Precision { kFloat64, kFloat32 };
void round_to(Precision precision, DataType dtype, TensorValues& values);

/// What an input, parameter, state or constant of the graph holds at the start of `step`. Drawn from the seed and the
/// tensor's name, so it is the same on any mesh and does not change when another tensor is added; only inputs depend on
/// the step.
///   inputs       numbers of both signs below 1; integers below the extent that they index
///   parameters   +-sqrt(3 / fan_in), so that a chain of layers neither grows nor fades; scales of norms around 1
///   states       small and not negative (a second moment is a mean of squares)
///   constants    their fill
TensorValues draw_tensor(const OperatorGraph& graph, TensorId tensor, std::uint64_t seed, std::uint64_t step);

/// What the random operator `name` is given in `step`; with the global index it decides every draw.
std::uint64_t operator_seed(std::uint64_t seed, std::uint64_t step, std::string_view name);

}  // namespace shardplan
