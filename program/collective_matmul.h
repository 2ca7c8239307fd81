#pragma once

#include "graph/operator_graph.h"
#include "operators/operation.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A product of two tensors: MatMul, BatchMatMul, Einsum of two terms; no convolution, no attention.
bool is_product(const Operation& operation);

/// What an operator makes and others read, but for gradients on their way to an update and new values.
bool is_activation(const OperatorGraph& graph, TensorId tensor);

/// Collective matmul, for software that does it (`CollectiveSoftware::collective_matmul`): sets `Instruction::in_pieces` of each
/// all_gather of an activation that a product reads, and of each reduce_scatter of an activation that a product makes. Such
/// a collective runs piece by piece beside that product (program/overlapped_timeline.h). Values, layouts and
/// times stay what they are.
/// Source: Wang et al., Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023;
/// `--tp-comm-overlap` of Megatron-Core, which is Transformer Engine's.
void cut_in_pieces(ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
