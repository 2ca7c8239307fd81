#pragma once

#include <string>
#include <vector>

#include "model/blocks/block_template.h"
#include "model/model.h"
#include "model/syntax/settings_table.h"

namespace shardplan {

/// Copies the templates of a model into one graph: full names, the tensors and operators of every copy, and what the
/// user decided of each. A strategy on a block's border or on a result becomes an Identity of that strategy: BLOCK.in0,
/// BLOCK.out0, RESULT.out0. Adds to `builder`; what is wrong with strategies is added to `faults`.
/// `device` receives what blocks say of it.
void instantiate_model(const BlockTemplate& file, const ParallelOptions& parallel, const TrainingOptions* training,
                       SettingsTable& settings, OperatorGraphBuilder& builder, std::vector<std::string>& notices,
                       std::string& device, std::vector<Diagnostic>& faults);

}  // namespace shardplan
