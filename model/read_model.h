#pragma once

#include <memory>
#include <string>

#include "model/model.h"
#include "model/model_source.h"

namespace shardplan {

/// The source that a file's text describes; `file` names it in diagnostics. Throws InputError if it cannot be parsed;
/// all other faults are found by `at`.
std::shared_ptr<const ModelSource> model_source(std::string text, std::string file);

/// Read a model file, or its text under the name `file`. Throw InputError with all faults found.
Model read_model(const std::string& path, const ModelOverrides& overrides = {});
Model read_model_text(const std::string& text, const std::string& file, const ModelOverrides& overrides = {});

}  // namespace shardplan
