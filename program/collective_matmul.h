#pragma once

#include "graph/operator_graph.h"
#include "operators/operation.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A product of two tensors: MatMul, BatchMatMul, Einsum of two terms; no convolution, no attention.
bool is_product(const Operation& operation);

/// Whether a tensor is produced by an operator and read by others, and is neither a gradient before an update nor an
/// updated value.
bool is_activation(const OperatorGraph& graph, TensorId tensor);

/// Collective matmul, for software that supports it (`CollectiveSoftware::collective_matmul`): sets
/// `Instruction::in_pieces` for each all_gather of an activation that a product reads and each reduce_scatter of an
/// activation that a product computes. Such a collective runs piece by piece beside that product
/// (program/overlapped_timeline.h). Values, layouts and times are unchanged.
/// Source: Wang et al., Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023;
/// `--tp-comm-overlap` of Megatron-Core, implemented in Transformer Engine.
void cut_in_pieces(ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
