#pragma once

#include <optional>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "program/buckets.h"
#include "program/instruction_table.h"

namespace shardplan {

/// Issues gathers of given values (stored weights), with kernels that convert those first, or of values kept since the
/// forward pass, with the collectives that continue from them, early enough to end when their readers begin, computed backwards from the end of the step
/// as if the links were otherwise idle. Collectives in the micro-batch loop stay in it. With `joins`, gathers that
/// are then adjacent become one collective of at most that many bytes.
///
///     f (10 us), gather w (4 us), g reads w      the gather is issued before f, and f runs meanwhile:
///     gather w, f, g
IssueOrder prefetched(const InstructionTable& table, const OperatorGraph& graph, const IssueOrder& order,
                      std::optional<Bytes> joins);

}  // namespace shardplan
