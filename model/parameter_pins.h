#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/operator_graph.h"
#include "graph/training_options.h"
#include "model/model.h"
#include "model/syntax/settings.h"

namespace shardplan {

/// What the user pins of a parameter's training (gradient_strategy, state_strategy, gradient_dtype, state_dtype), as the graph
/// holds it; nothing if it is nothing.
std::optional<ParameterPins> parameter_pins(const Settings& said);

/// Faults of these keys at a parameter: no training or not trained, states that the optimizer does not keep, and what
/// contradicts parallel_optimizer: false or gradient_fp32_sync: true. `training`: null if there is none.
void check_parameter_pins(const GraphTensor& parameter, const Settings& said, const ParallelOptions& parallel,
                          const TrainingOptions* training, std::vector<Diagnostic>& faults);

/// The same at the use of a block, which takes types but no layouts.
void check_block_pins(const std::string& name, const Settings& said, const TrainingOptions* training,
                      std::vector<Diagnostic>& faults);

/// The same of the types that the `training:` section `node` gives to all parameters.
void check_training_pins(const YamlDocument& document, const YamlNode& node, const TrainingOptions& training,
                         const ParallelOptions& parallel, std::vector<Diagnostic>& faults);

}  // namespace shardplan
