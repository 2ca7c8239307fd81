#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// The elements of one global tensor, row-major, float64 whatever the dtype.
using TensorValues = std::vector<double>;

/// Numbers of at least this size (masks: -1e9) stand for infinity. They must not hide smaller numbers, so they do not
/// count as the largest of a tensor and are compared relative to themselves.
inline constexpr double kStandsForInfinity = 1e8;

/// How the numbers of a run are held: unchanged, or rounded to float after every instruction (integers stay unchanged).
enum class Precision { kFloat64, kFloat32 };
bool is_rounded(Precision precision, DataType dtype);
void round_to(Precision precision, DataType dtype, TensorValues& values);

/// The optimizer's states at the start of the first step.
enum class States {
  kRandom,  // small and not negative (a second moment is a mean of squares), a step count below 8: as in mid-training
  kFresh,   // zero
};

/// The values of an input, parameter, state or constant of the graph at the start of `step`. They are drawn from the
/// seed and the tensor's name, so they are the same on any mesh and do not change when another tensor is added. Only
/// inputs depend on the step (with micro-batches: on the micro-batch, counted through all steps).
///   inputs       numbers of both signs below 1; integers below the extent that they index, none twice in a row if
///                elements are compared (TopK) and there are enough: equal tokens may have equal scores
///   parameters   +-sqrt(3 / fan_in), so that a chain of layers neither grows nor fades; scales of norms around 1
///   states       as `states` says; a master copy equals its parameter
///   constants    their fill
TensorValues draw_tensor(const OperatorGraph& graph, TensorId tensor, std::uint64_t seed, std::uint64_t step,
                         States states = States::kRandom);
/// The same with another shape: that of the whole of which the graph's tensor is a piece.
TensorValues draw_tensor(const OperatorGraph& graph, TensorId tensor, const Shape& shape, std::uint64_t seed,
                         std::uint64_t step, States states);

/// The seed of a random operator in `step`, which with the global index decides every draw. A copy of a forward
/// operator, run again in the backward pass, draws the same numbers as the original.
std::uint64_t operator_seed(const OperatorGraph& graph, OperatorId op, std::uint64_t seed, std::uint64_t step);

}  // namespace shardplan
