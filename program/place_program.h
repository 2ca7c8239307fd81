#pragma once

#include <functional>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The time in which each device of worker `from` sends `bytes` bytes to the device of worker `to` that has the same
/// place there.
using SendTime = std::function<Picoseconds(int from, int to, Bytes bytes)>;

/// Divides a program among workers (`place`), each of which has as many devices as the program's mesh:
///   - What belongs to an operator runs on the operator's worker (`GraphOperator::worker`); what brings a tensor to
///     several readers, an output or its stored layout runs where the tensor is.
///   - A parameter is stored where its first reader is, its states beside it. Every worker loads the inputs that it reads.
///   - A value that another worker reads is sent there, once in each run of the sequence: one send per value and worker.
/// Each worker's part of the sequence is ordered so that it does, of all that it can begin, what comes first in the
/// program given; a send begins when both workers are free, and keeps both.
///
/// Requires: `program` is of one worker, operators' workers are below `workers`.
ParallelProgram place_program(const ParallelProgram& program, const OperatorGraph& graph, int workers,
                              const SendTime& send_time);

}  // namespace shardplan
