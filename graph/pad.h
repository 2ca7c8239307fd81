#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// A forward graph whose dimensions are larger than the model's, made to compute what the model computes: `padded` is the
/// graph of `real` read at sizes that are rounded up. Its result has the same operators under the same names, and where one
/// of them would see what stands in the padding, an operator in front of it, MaskPadding, that puts a number there which
/// has no influence:
///
///   sums, contractions       0 in one of the operands, the smaller one; nowhere if one of them holds 0 there already
///   maxima, softmax, top k   -1e30 (minima 1e30), which stands for infinity: f16 holds the number furthest from 0 that it
///                            has, -65504, which is as neutral; in attention the attribute `valid_keys`
///   means, norms             0, and what is divided by too large a count is scaled by one number
///   losses by rows           the losses of padded rows become 0 before they are added up
///   all that maps            nothing: positions that exist are made of positions that exist
///
/// So each position that exists in both graphs holds the same number in both, up to rounding. Differentiated
/// (graph/differentiate.h) the same is true of gradients and of new values, and the gradient of whatever stands in the
/// padding is 0: parameters and inputs may hold any finite numbers there, and integers that are valid indices.
///
/// Numbers that the model computes from its sizes (1/sqrt(D)) and extents of indices are those of `real`;
/// `GraphTensor::padding` says which positions exist. The place of padding follows from the operators
/// (graph/padded_positions.h).
///
/// Throws InputError with all faults, each naming operator and dimension: what no mask makes exact (a convolution over a
/// padded image, a slice of a padded dimension, statistics of a padded batch, ...).
OperatorGraph pad(const OperatorGraph& real, const OperatorGraph& padded);

}  // namespace shardplan
