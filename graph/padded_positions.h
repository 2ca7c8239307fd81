#pragma once

#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// Which positions of a padded graph exist without padding, for every dimension of every tensor and every factor of
/// every operator.
struct PaddedPositions {
  IdVector<TensorId, PaddedShape> tensors;
  IdVector<OperatorId, PaddedShape> factors;
};

/// `real` and `padded` are one model at two sizes: the same operators on the same tensors, none of them smaller in
/// `padded`. Dimensions that walk one factor have the same existing positions; one that walks several is their product.
/// So if the heads of a dimension heads * depth are padded, the same positions exist wherever it is read: before the
/// operator that splits it, and in the weight that produces it. By default the first positions of a dimension exist.
///
/// Throws InputError with all faults, each with its operator's place: a dimension that two operators need in two ways,
/// one that is smaller with padding, a different operator at padded sizes.
PaddedPositions find_padded_positions(const OperatorGraph& real, const OperatorGraph& padded);

/// Sets the missing `GraphTensor::padding` of tensors computed from padded ones: gradients, states, new values.
OperatorGraph with_padding_of_results(const OperatorGraph& graph);

}  // namespace shardplan
