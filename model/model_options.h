#pragma once

#include <optional>
#include <vector>

#include "base/yaml.h"
#include "model/model.h"

namespace shardplan {

/// The sections `training:` and `parallel:`, checked; faults are added, and what is wrong keeps its default.
TrainingOptions read_training(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults);
ParallelOptions read_parallel(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults);

/// Of a file without `training:`: what `parallel:` says of it has no effect. A key that is a fault already causes no
/// second one.
void check_keys_of_training(const YamlDocument& document, const YamlNode& parallel, std::vector<Diagnostic>& faults);

}  // namespace shardplan
