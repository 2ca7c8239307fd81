#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.h"

namespace shardplan {

/// The values that a key may have; the names are those of the definitions in the JSON Schema.
enum class ValueForm {
  kText,
  kName,
  kNames,   // one name or a list
  kInputs,  // tensors or numbers, one or a list
  kWhole,   // a whole number
  kNumber,
  kFlag,        // true or false
  kExpression,  // arithmetic on dims
  kShape,
  kDataType,
  kEntry,  // one dimension of a strategy
  kEntries,
  kPlace,
  kDims,
  kBlockDims,
  kTensors,
  kConstants,
  kBlocks,
  kOperators,
  kTraining,
  kParallel,
  kStrategies,
  kCustomOperators,
  kMesh,
  kCommFusion,
  kFactors,
};

/// One key of a map in a model file: the reader accepts exactly these, and the schema lists them.
struct KeySpec {
  std::string name;
  ValueForm form = ValueForm::kText;
  std::string meaning;
  std::vector<std::string> choices;  // if only these words are allowed
};
using KeySpecs = std::vector<KeySpec>;

const KeySpecs& file_keys();
const KeySpecs& block_keys();
const KeySpecs& dim_keys();  // of the file's
const KeySpecs& input_keys();
const KeySpecs& parameter_keys();
const KeySpecs& constant_keys();
/// Keys that an operator has beside its attributes, and a block's use beside its dims.
const KeySpecs& operator_keys();
const KeySpecs& call_keys();
/// Keys that operators, blocks and the lines of `strategies:` share.
const KeySpecs& settings_keys();
const KeySpecs& place_keys();
const KeySpecs& training_keys();
const KeySpecs& parallel_keys();
const KeySpecs& custom_operator_keys();

std::vector<std::string> key_names(const KeySpecs& specs);
/// What `device` may name: MindSpore's device targets.
const std::vector<std::string>& device_names();
/// The types in which a gradient is summed, and those in which moments are stored.
const std::vector<std::string>& gradient_types();
const std::vector<std::string>& state_types();

/// For options of MindSpore's Cell.recompute what says the same here; empty for other words.
std::string_view other_recompute_word(std::string_view key);

/// `check_keys`, and for a key of another section where it belongs: "zero is a key of parallel".
void check_model_keys(const YamlDocument& document, const YamlNode& node, const KeySpecs& known, std::string_view where,
                      std::vector<Diagnostic>& faults);

}  // namespace shardplan
