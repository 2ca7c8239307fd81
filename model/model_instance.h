#pragma once

#include <string>
#include <vector>

#include "model/blocks/block_template.h"
#include "model/model.h"
#include "model/syntax/settings_table.h"

namespace shardplan {

/// What becomes of a file's template when its copies get names: the graph under construction, and what was found out on
/// the way.
struct ModelInstance {
  OperatorGraphBuilder graph;
  std::optional<Placed<std::string>> device;  // that the whole job runs on, as `parallel:` or a block says
  bool is_sharded = false;                    // a block has a strategy on its border: MindSpore's shard
  std::optional<Placed<int>> last_worker;     // the highest that a `place` names
  std::vector<std::string> notices;           // for standard error
  std::vector<Diagnostic> faults;             // what is wrong with strategies
};

/// Copies the templates of a model into one graph: full names, the tensors and operators of every copy, and what the
/// user decided about each. A strategy on a block's border or on a result becomes an Identity of that strategy:
/// BLOCK.in0, BLOCK.out0, RESULT.out0. `graph` holds the templates' operations already.
ModelInstance instantiate_model(const BlockTemplate& file, const ParallelOptions& parallel,
                                const TrainingOptions* training, SettingsTable settings, OperatorGraphBuilder graph);

}  // namespace shardplan
