#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "planner/problem/strategy_file.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// What is decided before a search starts.
struct DecidedStrategies {
  UserStrategies strategies;
  LoadedStrategies loaded;              // what else the strategy file decides
  IdVector<OperatorId, char> is_final;  // operators whose tensors' layouts also follow (layouts_by_mode)
  std::vector<AxisRef> pieces;          // of the mesh, that the rest of the search may use
  std::vector<std::string> notices;
};

/// Which pieces of the mesh the search may use.
struct SearchPieces {
  std::vector<AxisRef> pieces;
  /// An axis that strategies of the user or the file, or layouts of stored tensors, divide otherwise is divided as they
  /// do, if they agree: else what reads and writes these tensors could not follow them.
  bool follows_strategies = false;
};

/// The user's own strategies and those of `strategy_file` (a path; empty: none; nothing: as the model says); where the user gave none, what the
/// parallel modes prescribe (planner/problem/mode_strategies.h); with full_batch inputs are replicated. Everything
/// else stays open. Throws InputError with all errors in the user's strategies or the file.
DecidedStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                     const SearchPieces& search, const std::optional<std::string>& strategy_file);

}  // namespace shardplan
