#pragma once

#include "graph/operator_graph.h"
#include "graph/training_options.h"

namespace shardplan {

/// The graph of one training step: the forward operators, then the backward ones, then the updates. All are ordinary
/// operators of the catalogue, so later stages need not know about training.
///
/// - The backward pass starts from a replicated 1 on the loss and visits the forward operators in reverse; if a
///   tensor has several readers, its gradients are added in that order.
/// - Every trained parameter gets an update, and states of its shape ("NAME.moment1", ...). With mixed precision the
///   gradient is cast to f32 and a master copy ("NAME.master") is updated, unless it is switched off.
/// - With `exchanged_over` every gradient except those in `not_exchanged` is summed over the devices before its
///   update ("grad.PARAMETER.AllReduce"); gradients with the same `comm_fusion` above 0 and the same type are summed
///   together, after the last of them ("comm_fusion.ID.FusedAllReduce").
/// - The user's `ParameterPins` set: the types of gradients and moments; the layout of a gradient, on the operator
///   that produces its sum or, without micro-batches, on an additional Identity; the layout of states, on the update.
/// - The forward pass updates the moving statistics of BatchNorm.
/// - With micro-batches the forward and backward operators run several times per step (`OperatorGraph::runs`): each
///   gradient is added to its own mean, in f32 with mixed precision ("grad.PARAMETER.Accumulate"), as soon as it is
///   complete; the graph's loss is the mean of their losses ("mean.LOSS.Accumulate"). Whether the mean is formed from
///   partial gradients, and so reduced once after the last micro-batch, is decided by its layout. With
///   `widens_before_sum` a gradient is cast to the type of its sum first, so that it is reduced in it in either case.
/// - Backward operators are named "grad.OPERATOR.TYPE", a parameter's final gradient "grad.PARAMETER", updates
///   "update.PARAMETER".
///
/// Throws InputError: an operator on the path from the loss to a trained parameter that has no gradient (named), an
/// unknown optimizer, a loss that is not a scalar, or master_copy: false if no parameter would have one.
OperatorGraph differentiate(const OperatorGraph& forward, const TrainingOptions& options);

}  // namespace shardplan
