#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// Makes a forward graph with padded dimensions compute what the model computes: `padded` is the graph of `real` read
/// at sizes that are rounded up. The result has the same operators under the same names. Where an operator's result
/// would depend on the padding, a MaskPadding in front of it fills the padding with a value that has no influence:
///
///   sums, contractions       0 in one of the operands, the smaller one; no mask if one of them already holds 0 there
///   maxima, softmax, top k   -1e30 (minima 1e30) in place of infinity; f16 takes its number furthest from 0, -65504,
///                            which is as neutral; in attention the attribute `valid_keys`
///   means, norms             0, and one scale factor corrects the division by too large a count
///   losses by rows           the losses of padded rows become 0 before they are added up
///   pass-through factors     none: positions that exist are computed from positions that exist
///
/// Each position that exists in both graphs therefore has the same value in both, up to rounding. After differentiation
/// (graph/differentiate.h) this also holds for gradients and new values, and the gradient of everything in the padding
/// is 0: parameters and inputs may hold any finite numbers and valid indices there.
///
/// Numbers that the model computes from its sizes (1/sqrt(D)) and extents of indices are those of `real`;
/// `GraphTensor::padding` records which positions exist. The operators determine where padding is
/// (graph/padded_positions.h).
///
/// Throws InputError with all faults, each naming operator and dimension, if no mask makes the result exact (a
/// convolution over a padded image, a slice of a padded dimension, statistics of a padded batch, ...).
OperatorGraph pad(const OperatorGraph& real, const OperatorGraph& padded);

}  // namespace shardplan
