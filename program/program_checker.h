#pragma once

#include <string>

#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Nothing, or the first fault of a program, named by its instruction or value:
///   - a layout that does not fit its shape, a local shape that does not follow from the layout, a type that is not the
///     graph's;
///   - a loop of micro-batches that is not at the beginning, or a sum read within it;
///   - an input used before it is made, a value made twice;
///   - a collective whose layouts do not fit its kind, an operator whose operands or results lie otherwise than its
///     strategy says;
///   - a bucket (equal fusion ids) of unlike collectives, in two places, that reads what it makes itself, or whose
///     buffer is not what its members fill;
///   - an instruction that reaches to another worker's values and is not a send, a send to one's own worker or that
///     changes what it sends, a stored tensor updated on another worker than it is stored on;
///   - an output that is partial or never made, a stored tensor updated in another layout than it is stored in.
/// Shares no code with lowering: what lowering writes is checked before it is run or printed.
std::string check_program(const ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
