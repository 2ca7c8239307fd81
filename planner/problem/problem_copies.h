#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "costmodel/kernel_fusion.h"
#include "graph/operator_graph.h"
#include "graph/tensor_versions.h"
#include "planner/problem/candidate_table.h"
#include "planner/problem/layout_tables.h"
#include "planner/problem/problem_nodes.h"

namespace shardplan {

/// By result of a view: until when the tensor that it is a view of may be in memory for other readers, so that the
/// view takes no memory; 0 for all other tensors. The new value of a cache that is written in place counts as a view.
IdVector<TensorId, std::uint32_t> shown_until(const OperatorGraph& graph, const TensorVersions& versions);

/// What a problem's copies are made from.
struct CopiesInput {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const KernelFusion& fusion;
  const IdVector<OperatorId, const CandidateTable*>& tables;
  const IdVector<VersionId, ListId>& version_lists;
  const IdVector<VersionId, std::optional<UsageTableId>>& version_usage;  // nothing if it takes no memory
  const IdVector<TensorId, std::uint32_t>& shown_until;
};

/// What holds an operand, in the layout in which the operator takes it, while that runs.
struct HeldOperand {
  Reader reader;
  NodeId node;
  UsageTableId usage;
};

/// Adds the memory that depends on several nodes, as nodes of its own, to a problem with all other nodes and edges.
///
/// While anything holds what a view shows, the view's result takes no memory, whether as produced, in a later version,
/// or as an operand, if all of these have the layout of what is held: what the view reads; its result, compared with
/// the layout in which it takes that; the later version or operand. Each comparison is a node. Held is the version that
/// the view reads, and after that a version made from it, if it has the same layout (another node).
///
/// With `of_operands` also the copy that an operator holds of an operand in another layout than the version it reads;
/// there are many of these. Without them the problem counts a version as held by its last reader that this one may have
/// replaced by a smaller copy; then the version might as well have the copy's layout, so the least peak is still a lower
/// bound on what programs hold. Returns the operands that it counts.
std::vector<HeldOperand> add_copies(const CopiesInput& input, const LayoutTables& layouts, bool of_operands,
                                    ModelProblem& model);

}  // namespace shardplan
