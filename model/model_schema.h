#pragma once

#include <string>

namespace shardplan {

/// The JSON Schema (draft 7) of model files, for editors: made from the tables that the reader itself uses
/// (model_keys.h, the catalogue, the built-in blocks), so that the two cannot part. configs/model.schema.json is this
/// text.
std::string model_schema();

}  // namespace shardplan
