#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// What is decided before a search starts.
struct DecidedStrategies {
  UserStrategies strategies;
  IdVector<OperatorId, char> is_loaded;  // operators that the strategy file names
  IdVector<OperatorId, char> is_final;   // operators whose tensors' layouts also follow (layouts_by_mode)
  std::vector<std::string> notices;
};

/// The user's own strategies and those of `strategy_file` (a path; empty: none); where the user gave none, what the
/// parallel modes prescribe (planner/problem/mode_strategies.h); with full_batch inputs are replicated. Everything
/// else stays open. Throws InputError with all errors in the user's strategies or the file.
DecidedStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                     const std::vector<AxisRef>& pieces, const std::string& strategy_file);

}  // namespace shardplan
