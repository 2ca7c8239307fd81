#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/operator_graph.h"
#include "model/blocks/block_names.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// One body at given input types: every size is known, names are still relative. 96 equal layers are one template,
/// which model/model_instance.h copies. Values are the body's tensors, counted: inputs first.
struct BlockTemplate {
  using Value = std::uint32_t;

  struct Stored {  // a parameter, a constant, or a number among an operator's inputs
    std::string name;
    Value value = 0;
    Fill fill;
    const TensorSyntax* syntax = nullptr;  // null: a number
  };
  struct Parameter {  // of a block that this body uses, read by this body
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
};

struct TemplateOptions {
  DataType dtype = DataType::kF32;  // of floating tensors that do not say one
  std::int64_t max_operators = 500'000;
};

/// Types the bodies of one file. Keeps what it has typed, so that a block is worked through once for each set of input
/// types.
class TemplateLibrary {
 public:
  /// `dims` are all of the file's, evaluated. Operations are interned in `builder`.
  TemplateLibrary(const ModelSyntax& model, std::map<std::string, std::int64_t> dims, TemplateOptions options,
                  OperatorGraphBuilder& builder, std::vector<Diagnostic>& faults);
  ~TemplateLibrary();

  /// The file's own body; null if there were faults. `unchecked` receives operators whose shapes were not checked since
  /// something before them is wrong.
  const BlockTemplate* file_template(std::vector<std::string>& unchecked);

 private:
  friend class BodyTyper;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
