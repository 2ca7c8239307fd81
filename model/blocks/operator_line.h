#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/blocks/block_faults.h"
#include "model/blocks/block_template.h"
#include "model/blocks/file_context.h"
#include "model/syntax/dim_scope.h"
#include "model/syntax/model_keys.h"
#include "operators/operator_type.h"

namespace shardplan {

/// What operators and uses of blocks have in common, as lines of a file.

/// The attributes given next to `op`, by `specs`; `shape` is left out of an operator's unless it is one of them.
/// `keys` are the other keys of the line, for suggestions. Nothing after faults.
std::optional<Attributes> read_attributes(const OperatorSyntax& op, const std::vector<AttributeSpec>& specs,
                                          const KeySpecs& keys, const YamlDocument& document, DimScope& dims,
                                          BlockFaults& faults);

/// Where a message about a line points: at the attribute that it names, else at the inputs, else at the type.
SourcePlace place_of(const OperatorSyntax& op, const std::string& message);

void report_wrong_count(const OperatorSyntax& op, std::size_t expected, BlockFaults& faults);

/// Counts `added` operators to a template; false, with a fault, where there are too many.
bool count_operators(BlockTemplate& block, std::int64_t added, const OperatorSyntax& op, const TemplateOptions& options,
                     BlockFaults& faults);

}  // namespace shardplan
