#pragma once

#include <optional>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "program/buckets.h"
#include "program/instruction_table.h"

namespace shardplan {

/// Gathers of what is given (stored weights) or kept since the forward pass, and the collectives that go on with what they
/// leave, are issued so early that they end when their readers begin, counted from the end of the step as if the links had
/// nothing else to do. What is issued in the loop of micro-batches stays there. With `joins`, what then stands beside each
/// other is one collective of at most so many bytes.
///
///     f (10 us), gather w (4 us), g reads w      the gather is issued before f, and f runs meanwhile:
///     gather w, f, g
IssueOrder prefetched(const InstructionTable& table, const OperatorGraph& graph, const IssueOrder& order,
                      std::optional<Bytes> joins);

}  // namespace shardplan
