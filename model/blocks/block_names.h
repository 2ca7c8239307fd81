#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/syntax/model_syntax.h"

namespace shardplan {

/// What a name in `in:` or `outputs:` of one body stands for.
struct NameSource {
  enum class Kind { kUnknown, kNumber, kInput, kConstant, kParameter, kOperator };
  Kind kind = Kind::kUnknown;
  std::size_t index = 0;              // in the body's list of that kind
  std::optional<std::size_t> result;  // an operator's result that `out:` names
  std::string rest;                   // of an operator: what follows its name: "" or "embedding_table" or "3.weight"
};

/// The names of one body, resolved before anything has a type.
struct BlockNames {
  std::vector<std::vector<NameSource>> operands;  // by operator
  std::vector<std::size_t> order;                 // operators, each after those it reads; ties by the file's order
  std::vector<NameSource> outputs;
  std::vector<std::string> output_names;  // what a caller writes after the call's name
  std::vector<SourcePlace> output_places;
  std::optional<NameSource> loss;
  bool is_good = true;
};

/// Resolves names, checks that `share:` names a use that can own parameters and that nothing else is said of them
/// there, and finds cycles and what is not used: inputs, parameters, operators that feed no output. `label` stands
/// before names in faults ("layer." or ""). `reads_parameter` distinguishes a parameter from a result: `rest` is what
/// follows the name of the block's use `call`. `file`: of a block, the file around it, whose tensors it does not see.
BlockNames resolve_names(
    const BlockSyntax& block, const Word* loss, const std::string& label,
    const std::function<bool(const OperatorSyntax& call, const std::string& rest)>& reads_parameter,
    std::vector<Diagnostic>& faults, const BlockSyntax* file = nullptr);

}  // namespace shardplan
