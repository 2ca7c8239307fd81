#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operators/operation.h"
#include "operators/operator_type.h"

namespace shardplan {

/// A cell of MindSpore's `nn`, called as there. It is text of the block language: what a user could have written, for
/// the options and inputs at hand.
struct BuiltInBlock {
  std::string name;  // "nn.Dense"
  std::string summary;
  std::vector<AttributeSpec> options;
  std::size_t num_inputs = 1;
  /// The block's text. `options` is complete. Throws InputError (no place) if they do not fit each other.
  std::string (*text)(const Attributes& options, const std::vector<TensorType>& inputs) = nullptr;
};

/// Sorted by name.
const std::vector<BuiltInBlock>& built_in_blocks();
/// Null if there is none of that name.
const BuiltInBlock* find_built_in_block(std::string_view name);

}  // namespace shardplan
