#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "layouts/device_mesh.h"
#include "layouts/mindspore_layout.h"
#include "layouts/tensor_layout.h"
#include "strategies/strategy.h"

namespace shardplan {

/// MindSpore's strategy of one operator: pieces per dimension, one tuple per tensor.
using StrategyTuples = std::vector<std::vector<std::int64_t>>;

/// A strategy as tuples of the operands, if it has such: when a tuple is read back, its pieces are consecutive
/// row-major ranks in the order of the factors, and repetition comes last (layouts/mindspore_layout.h). On pcie=2,
/// hccs=4 a batch over pcie and a vocabulary over hccs is ((2, 1), (1, 4)); the opposite assignment has no tuple.
std::optional<StrategyTuples> input_tuples(const Operation& operation, const Strategy& strategy,
                                           const DeviceMesh& mesh);
/// The same for the results.
std::optional<StrategyTuples> output_tuples(const Operation& operation, const Strategy& strategy,
                                            const DeviceMesh& mesh);

/// "((2, 1), (1, 4))".
std::string tuple_text(const StrategyTuples& tuples);

/// "pcie, hccs:(1)2"; empty for no axes.
std::string axes_text(const std::vector<AxisRef>& axes, const DeviceMesh& mesh);

/// "b over pcie, v over hccs"; "all repeated" if nothing is sharded. Several axes of a factor: "m over x, y:(1)2".
/// Summands that stay: "m over x, partial over y".
std::string strategy_words(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh);

/// The user's text for one tensor: "(1, 8)", "[{dp}, {}]", "None", "()".
std::string entry_text(const StrategyEntry& entry);
/// "((1, 8))", "(None)".
std::string entries_text(const std::vector<StrategyEntry>& entries);

/// "{device_matrix: (2, 4), tensor_map: (-1, (1, 0))}", or the layout's text in quotes.
std::string device_matrix_text(const TensorLayout& layout, const DeviceMesh& mesh);

}  // namespace shardplan
