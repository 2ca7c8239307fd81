#pragma once

#include <string>

#include "graph/operator_graph.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Nothing, or the first error of a program, with the name of its instruction or value:
///   - a layout that does not fit its shape, a local shape that does not follow from the layout, a type that is not
///     the graph's;
///   - a micro-batch loop that is not at the beginning, or a sum read within it;
///   - an input used before it is made, a value made twice;
///   - a collective whose layouts do not fit its kind, an operator whose operands or results are not laid out as its
///     strategy says;
///   - a bucket (equal fusion ids) of unlike collectives, in two places, that reads its own results, or whose buffer
///     does not match its members;
///   - an instruction that accesses another worker's values and is not a send, a send to the same worker or that
///     changes its value, a stored tensor updated on another worker than where it is stored;
///   - an output that is partial or never made, a stored tensor updated in another layout than the one it is stored
///     in.
/// Shares no code with lowering: programs are checked before they are run or printed.
std::string check_program(const ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
