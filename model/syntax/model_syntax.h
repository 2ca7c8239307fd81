#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/yaml.h"
#include "model/syntax/expression.h"
#include "model/syntax/settings.h"

namespace shardplan {

/// A model file as it is written: keys and forms are checked, names and sizes have no meaning yet
/// (model/blocks/block_template.h gives them one).

struct Word {
  std::string text;
  SourcePlace place;
};

struct PlacedExpression {
  Expression expression;
  SourcePlace place;
};

struct ShapeSyntax {
  bool has_prefix = false;  // [..., C]: any dimensions before (built-in blocks only)
  std::vector<PlacedExpression> dims;
  SourcePlace place;
};

/// An input, parameter or constant.
struct TensorSyntax {
  Word name;
  std::optional<ShapeSyntax> shape;  // none: a constant that is a number
  std::optional<DataType> dtype;
  Fill::Kind fill = Fill::Kind::kValue;   // only constants have one
  std::optional<PlacedExpression> value;  // what Fill::kValue fills with
  bool layerwise_parallel = false;
  std::optional<ShapeSyntax> begin;  // of a model written per device: its place in the tensor of all devices
  Settings settings;                 // of an input `strategy` alone, of a parameter also how it is trained
};

/// A line of `operators:`: an operator, or the use of a block.
struct OperatorSyntax {
  Word name;
  Word type;  // the operator's or block's name
  bool is_block = false;
  std::vector<Word> in;
  SourcePlace in_place;
  std::vector<Word> out;
  std::vector<std::pair<Word, const YamlNode*>>
      attributes;  // all other keys; of a block: its given dims; `shape` is here
  std::optional<PlacedExpression> repeat;
  std::optional<Word> share;         // another use of the block, whose parameters this one shares
  std::optional<ShapeSyntax> ranks;  // of a model written per device: those that have it; nothing: all
  Settings settings;
};

struct BlockDim {
  enum class Kind { kInferred, kGiven, kExpression };
  Word name;
  Kind kind = Kind::kExpression;
  Expression expression;
  std::optional<std::int64_t> pad;  // of the file: the size is rounded up to a multiple of it
};

/// A block, or the file itself.
struct BlockSyntax {
  Word name;               // empty for the file
  std::string scope_name;  // as MindSpore prints it: "Dense" of nn.Dense
  bool is_built_in = false;
  std::vector<BlockDim> dims;
  std::vector<TensorSyntax> inputs;
  std::vector<TensorSyntax> constants;
  std::vector<TensorSyntax> parameters;
  std::vector<OperatorSyntax> operators;
  std::optional<std::vector<Word>> outputs;
  std::shared_ptr<const YamlDocument> document;  // what `attributes` points into

  bool is_file() const { return name.text.empty(); }
};

struct StrategyLine {
  Word name;  // a full name, '*' for any one part
  Settings settings;
};

struct CustomOperatorSyntax {
  Word name;
  Word rule;
  std::vector<std::pair<Word, Word>> factors;
  std::optional<PlacedExpression> flops;
};

struct ModelSyntax {
  std::string name;
  std::optional<DataType> dtype;
  std::optional<Placed<DataType>> autocast;
  std::vector<Word> fp8, int8_weights;  // names, '*' allowed
  BlockSyntax body;
  std::vector<BlockSyntax> blocks;
  std::optional<Word> loss;
  std::vector<StrategyLine> strategies;
  std::vector<CustomOperatorSyntax> custom_operators;
  std::optional<Word> cluster;
  std::optional<Placed<bool>> is_pynative;  // `mode:`
  const YamlNode* training = nullptr;       // read by model/model_options.h
  const YamlNode* parallel = nullptr;
  std::shared_ptr<const YamlDocument> document;
};

/// Reads a whole file; what it can make sense of is returned, the rest is in `faults`.
ModelSyntax read_model_syntax(const std::string& text, const std::string& file, std::vector<Diagnostic>& faults);

/// Reads the text of one block (that of a built-in): inputs, parameters, operators, ...
BlockSyntax read_block_syntax(const std::string& text, const std::string& name, std::vector<Diagnostic>& faults);

}  // namespace shardplan
