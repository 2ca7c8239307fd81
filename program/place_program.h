#pragma once

#include <functional>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The time in which each device of worker `from` sends `bytes` bytes to the device at the same position of worker
/// `to`.
using SendTime = std::function<Picoseconds(int from, int to, Bytes bytes)>;

/// Divides a program among workers (`place`), each with as many devices as the program's mesh:
///   - What belongs to an operator runs on the operator's worker (`GraphOperator::worker`); redistributions for
///     several readers, an output or a stored layout run where the tensor is.
///   - A parameter is stored where its first reader is, together with its states. Every worker loads the inputs that
///     it reads.
///   - A value that another worker reads is sent there, once in each run of the sequence: one send per value and
///     worker.
/// Of everything a worker can start, it runs what comes first in the given program; a send starts when both workers
/// are free, and occupies both.
///
/// Requires: `program` is of one worker, operators' workers are below `workers`.
ParallelProgram place_program(const ParallelProgram& program, const OperatorGraph& graph, int workers,
                              const SendTime& send_time);

}  // namespace shardplan
