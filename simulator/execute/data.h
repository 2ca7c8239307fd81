#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// One global tensor's numbers, row-major, float64 whatever the dtype.
using TensorValues = std::vector<double>;

/// Numbers from here on (masks: -1e9) stand for infinity. They must not hide the numbers beside them, so they do not
/// count as the largest of a tensor and are compared relative to themselves.
inline constexpr double kStandsForInfinity = 1e8;

/// How the numbers of a run are held: as they are, or rounded to float after every instruction (integers are left
/// alone).
enum class Precision { kFloat64, kFloat32 };
bool is_rounded(Precision precision, DataType dtype);
void round_to(Precision precision, DataType dtype, TensorValues& values);

/// What an optimizer's states hold at the start of the first step.
enum class States {
  kRandom,  // small and not negative (a second moment is a mean of squares), a count of steps below 8: as in
            // mid-training
  kFresh,   // zero
};

/// What an input, parameter, state or constant of the graph holds at the start of `step`. Drawn from the seed and the
/// tensor's name, so it is the same on any mesh and does not change when another tensor is added; only inputs depend on
/// the step (with micro-batches: on the micro-batch, counted through all steps).
///   inputs       numbers of both signs below 1; integers below the extent that they index
///   parameters   +-sqrt(3 / fan_in), so that a chain of layers neither grows nor fades; scales of norms around 1
///   states       as `states` says; a master copy holds what its parameter does
///   constants    their fill
TensorValues draw_tensor(const OperatorGraph& graph, TensorId tensor, std::uint64_t seed, std::uint64_t step,
                         States states = States::kRandom);
/// The same of another shape: of the whole of which the graph's tensor is a piece.
TensorValues draw_tensor(const OperatorGraph& graph, TensorId tensor, const Shape& shape, std::uint64_t seed,
                         std::uint64_t step, States states);

/// What a random operator is given in `step`; with the global index it decides every draw. A copy of a forward
/// operator, run again in the backward pass, draws what the original drew.
std::uint64_t operator_seed(const OperatorGraph& graph, OperatorId op, std::uint64_t seed, std::uint64_t step);

}  // namespace shardplan
