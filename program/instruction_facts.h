#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// True for kernels and constants.
bool is_computation(const Instruction& instruction);

/// True for instructions that occupy links: collectives except slices and local steps, halo exchanges, and sends.
bool is_communication(const Instruction& instruction);

/// True for an operator of the loop that adds each micro-batch's result to one sum (`OperatorType::accumulates`).
bool is_accumulating(const Instruction& instruction);

/// One past the last instruction that is issued together with `begin`: the end of its bucket, or `begin + 1`.
std::size_t end_of_bucket(const ParallelProgram& program, std::size_t begin);

/// The worker that runs an instruction; for a send the sender, which holds its input.
int worker_of(const ParallelProgram& program, const Instruction& instruction);
/// The worker that holds an instruction's results; for a send the receiver.
int result_worker(const ParallelProgram& program, const Instruction& instruction);
/// "worker 0 -> 3" of a send.
std::string workers_text(const ParallelProgram& program, const Instruction& instruction);

/// The bytes of the tensor of one group of a collective: the result of an all_gather; each device's operand of a
/// reduce_scatter or all_reduce; all members' pieces together of an all_to_all or permute. Of a halo exchange or a
/// send, what one device receives.
Bytes group_bytes(const ParallelProgram& program, const Instruction& instruction);

/// The parameter or state that an instruction's tensor is, updates, or is the gradient of; nothing for others.
std::optional<TensorId> stored_tensor(const OperatorGraph& graph, const ParallelProgram& program,
                                      const Instruction& instruction);

}  // namespace shardplan
