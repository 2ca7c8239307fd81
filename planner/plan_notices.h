#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "model/model.h"
#include "program/parallel_program.h"

namespace shardplan {

/// What every device has for itself (graph/per_device.h), where a planned graph has such.
std::vector<std::string> per_device_notices(const OperatorGraph& graph, const ParallelOptions& parallel);

/// Nothing, or that some indices of comm_fusion are beyond the last gradient's; MindSpore warns of them, too. `program` is as
/// lowered.
std::optional<std::string> unused_fusion_index(const ParallelProgram& program, const OperatorGraph& graph,
                                               const CommFusions& fusions);

/// Adds a notice unless it is there.
void add_notice(std::vector<std::string>& notices, std::string text);

}  // namespace shardplan
