#include "report/text/origin_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/folded_names.h"
#include "program/instruction_facts.h"

namespace shardplan {
namespace {

/// A name within its outermost block: "attn.qkv.matmul" for "layers.3.attn.qkv.matmul".
std::string inner_name(std::string_view name) {
  const std::string block = top_block(name);
  return folded_name(name.size() > block.size() ? name.substr(block.size() + 1) : name);
}

/// The parameter whose update reads the instruction's tensor as a gradient: of a table of which only the rows that were
/// looked up are updated, that is the gradient of the lookup's result.
std::optional<TensorId> updated_by(const Plan& plan, const Instruction& instruction) {
  const OperatorGraph& graph = *plan.graph;
  const std::optional<OperatorId> reader = graph.find_operator(instruction.origin->consumer);
  if (!reader || graph.operators()[*reader].pass != Pass::kUpdate || !graph.operators()[*reader].parameter) return {};
  for (const auto* values : {&instruction.outputs, &instruction.inputs}) {
    for (const ValueId value : *values) {
      const std::optional<TensorId> id = plan.program.values[value].tensor;
      if (id && graph.tensor(*id).gradient_for) return *graph.operators()[*reader].parameter;
    }
  }
  return {};
}

}  // namespace

std::string folded_block(std::string_view name) { return folded_name(top_block(name)); }

std::string model_name(const OperatorGraph& graph, const std::string& name) {
  const std::optional<OperatorId> id = graph.find_operator(name);
  if (!id) return name;
  const GraphOperator& op = graph.operators()[*id];
  if (op.forward) return graph.operators()[*op.forward].name;
  if (op.parameter) return fmt::format("{}.{}", graph.tensor(*op.parameter).name, graph.operation(*id).type->name);
  return name;
}

std::string_view moved_words(const Plan& plan, const Instruction& instruction) {
  const Origin::Kind kind = instruction.origin->kind;
  if (kind == Origin::Kind::kMirror || kind == Origin::Kind::kParallelOptimizer) {
    const bool is_gathered = instruction.step->kind == CollectiveKind::kAllGather;
    const bool is_gradient = std::ranges::any_of(instruction.outputs, [&](ValueId value) {
      const std::optional<TensorId> id = plan.program.values[value].tensor;
      return id && plan.graph->tensor(*id).gradient_for;
    });
    return instruction.pass == Pass::kUpdate && is_gathered && !is_gradient ? "updated weights" : "gradients";
  }
  for (const auto* values : {&instruction.outputs, &instruction.inputs}) {
    for (const ValueId value : *values) {
      const std::optional<TensorId> id = plan.program.values[value].tensor;
      if (!id) continue;
      const GraphTensor& tensor = plan.graph->tensor(*id);
      if (tensor.kind == TensorKind::kParameter) return "weights";
      if (tensor.kind == TensorKind::kState) return "states";
      if (tensor.kind == TensorKind::kInput) return "inputs";
      if (tensor.updates) {
        return plan.graph->tensor(*tensor.updates).kind == TensorKind::kParameter ? "updated weights" : "states";
      }
      if (tensor.gradient_of) return "gradients";
    }
  }
  return updated_by(plan, instruction) ? "gradients" : "activations";
}

std::string origin_words(const Plan& plan, const Instruction& instruction) {
  const OperatorGraph& graph = *plan.graph;
  const Origin& origin = instruction.origin;
  if (origin.kind == Origin::Kind::kMirror || origin.kind == Origin::Kind::kParallelOptimizer) {
    const std::optional<TensorId> parameter = stored_tensor(graph, plan.program, instruction);
    const std::string of = parameter ? graph.tensor(*parameter).name.str() : model_name(graph, origin.producer);
    return fmt::format("{} of {}", moved_words(plan, instruction), folded_block(of));
  }
  if (const std::optional<TensorId> parameter = updated_by(plan, instruction)) {
    return fmt::format("gradients of {}", folded_block(graph.tensor(*parameter).name.str()));
  }
  const std::string producer = model_name(graph, origin.producer);
  const std::string consumer = model_name(graph, origin.consumer);
  const std::string_view backward = instruction.pass == Pass::kBackward ? "backward of " : "";
  if (origin.kind == Origin::Kind::kForwardOp || consumer.empty() || producer.empty()) {
    const std::string& of = producer.empty() ? consumer : producer;
    const bool is_sum = instruction.kind == InstructionKind::kCollective && !instruction.step->before.partial.empty();
    if (is_sum && producer != consumer) return fmt::format("{}sum of {}", backward, folded_name(of));
    const std::string because = origin.because.empty() ? "" : ", " + origin.because;
    return fmt::format("{}{}{}", backward, folded_name(of), because);
  }
  const std::string from = folded_block(producer);
  const std::string to = folded_block(consumer);
  if (from == to) return fmt::format("{}{}: {} -> {}", backward, from, inner_name(producer), inner_name(consumer));
  return fmt::format("{}{} -> {}", backward, from, to);
}

}  // namespace shardplan
