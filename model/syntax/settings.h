#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "graph/operator_graph.h"

namespace shardplan {

enum class ParallelMode { kStandAlone, kDataParallel, kSemiAutoParallel, kAutoParallel, kHybridParallel };

/// A value and where the user wrote it.
template <class T>
struct Placed {
  T value{};
  SourcePlace place;
};

/// What a user may decide about an operator, a block or a tensor: beside it, or under its name in `strategies:`.
struct Settings {
  std::optional<Placed<std::vector<StrategyEntry>>> in_strategy;
  std::optional<Placed<std::vector<StrategyEntry>>> out_strategy;
  std::optional<Placed<StrategyEntry>> strategy;  // a tensor's
  std::optional<Placed<int>> level;
  std::optional<Placed<ParallelMode>> parallel_mode;
  std::optional<Placed<int>> worker;  // where `place` puts it
  std::optional<Placed<int>> comm_fusion;
  std::optional<Placed<bool>> recompute;
  std::optional<Placed<bool>> gather_again;
  std::optional<Placed<bool>> compiled;
  std::optional<Placed<bool>> requires_grad;  // a parameter's, or of all in a block: whether it is trained
  std::optional<Placed<std::string>> device;
  std::optional<Placed<StrategyEntry>> gradient_strategy;  // a parameter's (ParameterPins)
  std::optional<Placed<StrategyEntry>> state_strategy;
  std::optional<Placed<DataType>> gradient_dtype;  // a parameter's, or of all in a block
  std::optional<Placed<DataType>> state_dtype;
  std::optional<Placed<bool>> parallel_optimizer;  // likewise; false: its states are not sharded by the mode
};

/// Reads the keys of `Settings` from the map `node` and leaves all others alone. `where` names its owner in faults.
Settings read_settings(const YamlDocument& document, const YamlNode& node, const std::string& where,
                       std::vector<Diagnostic>& faults);

/// Option text `NAME=ENTRY` of --set: a list of entries is the in_strategy of an operator or block, one entry the
/// strategy of a tensor; NAME may end in .in_strategy, .out_strategy, .strategy, .level, .gather_again,
/// .requires_grad, .parallel_optimizer or a key of a parameter's training (.state_dtype). Returns the name without that ending.
std::string read_set_option(const std::string& name, const std::string& entry, Settings& settings,
                            std::vector<Diagnostic>& faults);

}  // namespace shardplan
