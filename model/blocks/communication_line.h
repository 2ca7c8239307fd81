#pragma once

#include <optional>

#include "model/blocks/block_faults.h"
#include "model/blocks/file_context.h"
#include "model/syntax/dim_scope.h"
#include "operators/operator_type.h"

namespace shardplan {

/// The attributes of a communication operator in a model written per device, as the rank that reads it sees them. `group`
/// may be a list of ranks, a list of groups (the one that has the rank counts) or an axis of the mesh (the ranks along it);
/// `recv_shapes` and `send_shapes` are lists of shapes. `rank_size` follows.
///
///   group: [0, 2]              group: [[0, 1], [2, 3]]              group: mp
///
/// Nothing after faults: a rank that is not in the group, or beyond the last one.
std::optional<Attributes> read_communication(const OperatorSyntax& op, const OperatorType& type,
                                             const YamlDocument& document, DimScope& dims,
                                             const TemplateOptions& options, BlockFaults& faults);

}  // namespace shardplan
