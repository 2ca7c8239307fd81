#pragma once

#include <vector>

#include "graph/operator_graph.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// The products of weights (graph/float8.h) that a file's `fp8` marks: those of which it names the operator, or a block
/// that contains it ('*' stands for any one part of a name). A mark without any, which would have no effect, is a fault.
std::vector<OperatorId> float8_products(const OperatorGraph& graph, const std::vector<Word>& marks,
                                        std::vector<Diagnostic>& faults);

}  // namespace shardplan
