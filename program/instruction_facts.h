#pragma once

#include <optional>

#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// True for what the devices compute with: kernels and constants.
bool is_computation(const Instruction& instruction);

/// True for what occupies links: collectives but slices and local steps, and exchanges of halos.
bool is_communication(const Instruction& instruction);

/// True for an operator of the loop that adds what each micro-batch gives to one sum (`OperatorType::accumulates`).
bool is_accumulating(const Instruction& instruction);

/// The whole tensor of one group of a collective, in bytes: what all_gather ends with, what reduce_scatter and
/// all_reduce begin with on each device, all members' pieces together of an all_to_all or permute. Of a halo exchange,
/// what one device receives.
Bytes group_bytes(const ParallelProgram& program, const Instruction& instruction);

/// The parameter or state that an instruction's tensor is, is a new value of, or is the gradient of; nothing for
/// others.
std::optional<TensorId> stored_tensor(const OperatorGraph& graph, const ParallelProgram& program,
                                      const Instruction& instruction);

}  // namespace shardplan
