#pragma once

#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "model/read_model.h"
#include "model/syntax/strategy_syntax.h"

namespace shardplan {

// For tests that read short models from texts and check the result.

/// One line per operator: "fc = MatMul(x, weight) [64, 128]".
inline std::string outline(const OperatorGraph& graph) {
  std::string text;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    std::vector<std::string> operands;
    for (const TensorId operand : op.operands) operands.push_back(graph.tensor(operand).name);
    text += fmt::format("{} = {}({}) {}\n", op.name, graph.operation(id).type->name, fmt::join(operands, ", "),
                        graph.tensor(op.results[0]).type.shape);
  }
  return text;
}

inline const GraphOperator& operator_of(const OperatorGraph& graph, const std::string& name) {
  const std::optional<OperatorId> id = graph.find_operator(name);
  if (!id) throw std::runtime_error("no operator " + name);
  return graph.operators()[*id];
}
inline const GraphTensor& tensor_of(const OperatorGraph& graph, const std::string& name) {
  const std::optional<TensorId> id = graph.find_tensor(name);
  if (!id) throw std::runtime_error("no tensor " + name);
  return graph.tensor(*id);
}
inline std::string to_text(const StrategyEntry& entry) { return to_string(entry); }

inline Model read(const std::string& text, const ModelOverrides& overrides = {}) {
  return read_model_text(text, "m.yaml", overrides);
}

/// All errors of a text, or "" if it is valid.
inline std::string faults_of(const std::string& text, const ModelOverrides& overrides = {}) {
  try {
    read(text, overrides);
    return "";
  } catch (const InputError& error) {
    return error.what() + (error.note().empty() ? "" : "\n(" + error.note() + ")");
  }
}

}  // namespace shardplan
