#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "planner/plan.h"

namespace shardplan {

/// Three significant digits: 5.63, 56.3, 563, 5630.
std::string three_digits(double value);

/// Useful computation divided by communication. Empty if work is repeated, because the ratio only compares plans that
/// repeat none. Infinite without communication.
std::optional<double> ratio(const StepTime& time);
/// "3.55", "inf", "-".
std::string ratio_text(const StepTime& time);
/// The gap in percent, "0.3"; at least "0.1" if it is not 0, which is what "0.0" means; "-" if it is unknown.
std::string gap_text(const std::optional<double>& gap);

/// The unit in which MindSpore's weighted bytes are printed: the power of 1000 for which `largest` has at most three
/// digits before the point, and its name: {1e6, "MB"}.
std::pair<double, std::string_view> weighted_unit(const MindSporeValue& largest);

/// "", "training, " or "training in 32 micro-batches, ".
std::string training_words(const OperatorGraph& graph);
/// "dp=2, mp=4", or "of one device".
std::string mesh_words(const DeviceMesh& mesh);

/// True for the borders of a sharded block, "block1.in0" and "block1.out0" (`GraphOperator::border_of`).
bool is_border(const OperatorGraph& graph, OperatorId op);

/// The number of the model's operators, without borders.
std::size_t num_operators(const OperatorGraph& graph);

/// "forward", "backward", "update".
std::string_view to_string(Pass pass);

}  // namespace shardplan
