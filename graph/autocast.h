#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// A forward graph as it runs under `torch.autocast(dtype=narrow)`; `narrow` has two bytes. Parameters and inputs keep
/// their types, and
///
/// - products (matmuls, convolutions, attention, LSTM cells) compute in `narrow`;
/// - norms (but not those of batches), softmaxes, losses, sums, powers, exponentials and logarithms compute in f32;
/// - a bias, and what is written into a stored tensor, take the type of what they are added to or written into;
/// - all other operators compute in the types that they are given; of several, the result has the widest.
///
/// An operand of another type is read through a Cast, "<tensor>.<type>", which its readers share. It has the layout of
/// the first of them, where the user gives one. Tensors of f64 and of integers are never cast. Throws InputError where
/// an operator cannot compute in these types.
OperatorGraph autocast(const OperatorGraph& graph, DataType narrow);

}  // namespace shardplan
