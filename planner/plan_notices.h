#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "model/model.h"
#include "planner/plan.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Notices about what differs per device (graph/per_device.h) in a planned graph.
std::vector<std::string> per_device_notices(const OperatorGraph& graph, const ParallelOptions& parallel);

/// A notice if a model (its forward graph) asks for fused attention and decides operators inside of one itself, which
/// is then computed as written; else nothing.
std::optional<std::string> attention_as_written(const OperatorGraph& forward, const ParallelOptions& parallel);

/// Notices about attention that is left as written for another reason, or that there is none.
std::vector<std::string> unfused_attention(const OperatorGraph& forward, const ParallelOptions& parallel);

/// One notice for each entry of `recompute` of which nothing is computed again.
std::vector<std::string> idle_recomputation(const Model& model, const OperatorGraph& planned);

/// One notice for each block that has a level of its own, other than the model's.
std::vector<std::string> separate_levels(const OperatorGraph& graph, Level level);

/// All notices that only a model and its planned graph are needed for.
std::vector<std::string> model_notices(const Model& model, const OperatorGraph& planned);

/// A notice if some indices of comm_fusion are beyond the last gradient's (MindSpore warns of them too), else
/// nothing. `program` is as lowered.
std::optional<std::string> unused_fusion_index(const ParallelProgram& program, const OperatorGraph& graph,
                                               const CommFusions& fusions);

/// Adds a notice unless it is already there.
void add_notice(std::vector<std::string>& notices, std::string text);

/// That the time limit, or an interruption, ended the search for the plan: a notice, and `ended_early`.
void note_out_of_time(Plan& plan);
void note_interruption(Plan& plan);

/// At level 2, if the plan is far from its bound and the mesh has a large piece that nobody asked for: that `mesh: auto`
/// plans with other pieces.
void note_other_shapes(Plan& plan);

}  // namespace shardplan
