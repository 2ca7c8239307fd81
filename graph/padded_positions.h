#pragma once

#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// Which positions of a padded graph exist without padding: of every dimension of every tensor, and of every factor of
/// every operator.
struct PaddedPositions {
  IdVector<TensorId, PaddedShape> tensors;
  IdVector<OperatorId, PaddedShape> factors;
};

/// `real` and `padded` are one model at two sizes, the same operators on the same tensors, and nothing is smaller in
/// `padded`. What walks one factor exists alike; where a dimension walks several, it is their product. So a dimension of
/// heads * depth of which the heads are padded exists as the heads do wherever it is read, in front of the operator that
/// splits it and in the weight that makes it. What no operator decides exists at its first positions.
///
/// Throws InputError with all faults, each with the place of its operator: a dimension that two operators need in two
/// ways, one that is smaller with padding, another operator at padded sizes.
PaddedPositions find_padded_positions(const OperatorGraph& real, const OperatorGraph& padded);

/// Sets `GraphTensor::padding` of what has none yet and is computed from what has it: gradients, states, new values.
OperatorGraph with_padding_of_results(const OperatorGraph& graph);

}  // namespace shardplan
