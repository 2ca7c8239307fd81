#pragma once

#include "graph/operator_graph.h"
#include "graph/training_options.h"

namespace shardplan {

/// The graph of one training step: the forward operators, then the backward ones, then the updates. All are ordinary
/// operators of the catalogue, so that nothing behind knows that it is trained.
///
/// - The backward pass starts from a replicated 1 on the loss and runs the forward operators in reverse; where a tensor
///   has several readers its gradients are added up in that order.
/// - Every trained parameter gets its update, and states of its shape ("NAME.moment1", ...). With mixed precision the
///   gradient is cast to f32 and a master copy ("NAME.master") is what is updated, unless there is to be none.
/// - With `exchanged_over` every gradient but those of `not_exchanged` is summed over the devices before its
///   update ("grad.PARAMETER.AllReduce"); those of one `comm_fusion` above 0 and one type together, behind the last of them
///   ("comm_fusion.ID.FusedAllReduce").
/// - What the user pins (`ParameterPins`): types of gradients and moments; the layout of a gradient on what makes its sum,
///   without micro-batches on an Identity behind it; that of states on the update.
/// - The forward pass updates the moving statistics of BatchNorm.
/// - With micro-batches the forward and backward operators run several times a step (`OperatorGraph::runs`): each
///   gradient is added to a mean of its own, in f32 with mixed precision ("grad.PARAMETER.Accumulate"), as soon as it
///   is complete; the graph's loss is the mean of theirs ("mean.LOSS.Accumulate"). Whether the mean is made of partial
///   gradients, and so reduced once behind the last micro-batch, is a matter of its layout.
/// - Backward operators are named "grad.OPERATOR.TYPE", a parameter's final gradient "grad.PARAMETER", updates
///   "update.PARAMETER".
///
/// Throws InputError that names the operator on the way from the loss to a trained parameter that has no gradient, an
/// unknown optimizer, a loss that is not a scalar, or master_copy: false where no parameter would have one.
OperatorGraph differentiate(const OperatorGraph& forward, const TrainingOptions& options);

}  // namespace shardplan
