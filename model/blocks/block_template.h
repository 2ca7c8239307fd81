#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// One block, or the file itself, at given input types: every size is known, names are still relative. 96 equal layers
/// are one template, which model/model_instance.h copies. Values are the block's tensors, numbered; inputs come first.
struct BlockTemplate {
  using Value = std::uint32_t;

  struct Stored {  // a parameter, a constant, or a number among an operator's inputs
    std::string name;
    Value value = 0;
    Fill fill;
    const TensorSyntax* syntax = nullptr;  // null: a number
  };
  struct Parameter {  // a parameter of a block that this one uses and whose weight it reads
    std::size_t copy = 0;
    std::string path;
    Value value = 0;
  };
  struct Item {
    const OperatorSyntax* syntax = nullptr;
    std::vector<Value> operands;
    std::vector<Value> results;  // of a repeated block: of all copies, one after the other
    // An operator:
    OperationId operation;
    std::vector<std::string> result_names;
    // The use of a block:
    std::vector<const BlockTemplate*> copies;
    std::vector<Parameter> parameters;
  };

  const BlockSyntax* syntax = nullptr;
  std::vector<TensorType> types;  // by value
  std::size_t num_inputs = 0;
  std::vector<Stored> parameters;
  std::vector<Stored> constants;
  std::vector<Item> items;  // in program order
  std::vector<Value> outputs;
  std::vector<std::string> output_names;
  std::optional<Value> loss;
  std::int64_t num_operators = 0;  // all in all, with those of inner blocks

  Value add_value(TensorType type);
  std::vector<TensorType> types_of(const std::vector<Value>& values) const;
};

/// The type of the parameter "weight", "qkv.weight" or "layers.3.weight" of a block; nothing if it has none of that name.
std::optional<TensorType> parameter_type(const BlockTemplate& block, const std::string& path);

}  // namespace shardplan
