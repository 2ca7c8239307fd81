#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/blocks/block_faults.h"
#include "model/blocks/block_names.h"
#include "model/blocks/block_template.h"
#include "model/blocks/built_in_syntax.h"
#include "model/blocks/custom_operators.h"
#include "model/model.h"
#include "model/syntax/dim_scope.h"

namespace shardplan {

struct TemplateOptions {
  DataType dtype = DataType::kF32;  // for floating tensors that name no type
  bool autocast = false;            // the finished graph is cast (graph/autocast.h)
  std::int64_t max_operators = 500'000;
  std::int64_t most_copies = 0;                                 // above 0: no block is repeated more often
  std::optional<LocalView> local = {};                          // of a model written per device
  std::vector<std::pair<std::string, std::int64_t>> mesh = {};  // axes by which its groups may be named
};

/// A block that may be used: one of the file's, or a built-in one.
struct UsableBlock {
  const BlockSyntax* syntax = nullptr;
  const BlockNames* names = nullptr;
};

/// One use of a block.
struct BlockUse {
  const OperatorSyntax* call = nullptr;
  UsableBlock block;
  std::vector<TensorType> inputs;
  std::vector<std::int64_t> given;  // values of the dims that the caller gives, in the block's order
};

/// What the blocks of one file share while they are typed.
struct FileContext {
  const ModelSyntax& model;
  FileNumbers numbers;
  TemplateOptions options;
  OperatorGraphBuilder& builder;  // operations are interned here
  std::vector<Diagnostic>& faults;
  CustomOperators custom_operators;
  BuiltInSyntax built_in;
  std::map<std::string, UsableBlock> blocks;  // the file's, by name
  /// The template of a used block, typed if it is new; null after faults. `caller` is the block that uses it.
  std::function<const BlockTemplate*(BlockUse use, BlockFaults& caller)> template_of;
  std::int64_t num_typed = 0;  // operators in all templates
};

}  // namespace shardplan
