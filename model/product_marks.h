#pragma once

#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// The products of weights (graph/weights.h) that a file's `key` (fp8, int8_weights) marks: those of which it names the
/// operator, or a block that contains it ('*' stands for any one part of a name). A mark without any, which would have no
/// effect, is a fault.
std::vector<OperatorId> marked_products(const OperatorGraph& graph, const std::string& key,
                                        const std::vector<Word>& marks, std::vector<Diagnostic>& faults);

}  // namespace shardplan
