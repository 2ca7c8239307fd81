#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// True for what the devices compute with: kernels and constants.
bool is_computation(const Instruction& instruction);

/// True for what occupies links: collectives but slices and local steps, exchanges of halos, and sends.
bool is_communication(const Instruction& instruction);

/// True for an operator of the loop that adds what each micro-batch gives to one sum (`OperatorType::accumulates`).
bool is_accumulating(const Instruction& instruction);

/// One past the last instruction that is issued together with `begin`: the end of its bucket, or `begin + 1`.
std::size_t end_of_bucket(const ParallelProgram& program, std::size_t begin);

/// The worker that runs an instruction; of a send the one that sends, which holds what it reads.
int worker_of(const ParallelProgram& program, const Instruction& instruction);
/// The worker that an instruction's results are on; of a send the one that receives.
int result_worker(const ParallelProgram& program, const Instruction& instruction);
/// "worker 0 -> 3" of a send.
std::string workers_text(const ParallelProgram& program, const Instruction& instruction);

/// The whole tensor of one group of a collective, in bytes: what all_gather ends with, what reduce_scatter and
/// all_reduce begin with on each device, all members' pieces together of an all_to_all or permute. Of a halo exchange
/// and of a send, what one device receives.
Bytes group_bytes(const ParallelProgram& program, const Instruction& instruction);

/// The parameter or state that an instruction's tensor is, is a new value of, or is the gradient of; nothing for
/// others.
std::optional<TensorId> stored_tensor(const OperatorGraph& graph, const ParallelProgram& program,
                                      const Instruction& instruction);

}  // namespace shardplan
