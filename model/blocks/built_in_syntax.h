#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/blocks/block_names.h"
#include "model/blocks/built_in_blocks.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// The texts of built-in blocks, parsed: each once, however often it is used.
class BuiltInSyntax {
 public:
  struct Block {
    BlockSyntax syntax;
    BlockNames names;
  };

  /// The block for complete options and input types. Throws InputError (no place) if they do not fit each other.
  const Block& at(const BuiltInBlock& block, const Attributes& options, const std::vector<TensorType>& inputs);

 private:
  std::map<std::string, std::unique_ptr<Block>> blocks_;  // by name and text
};

}  // namespace shardplan
