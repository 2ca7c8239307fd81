#include "report/export/exported_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "graph/folded_names.h"
#include "report/export/export.h"

namespace shardplan {
namespace {

/// The layout of the first value in which each tensor is whole, or of its first value.
std::vector<const ProgramValue*> whole_values(const Plan& plan) {
  std::vector<const ProgramValue*> values(plan.graph->tensors().size(), nullptr);
  for (const ProgramValue& value : plan.program.values) {
    if (!value.tensor) continue;
    const ProgramValue*& found = values[value.tensor->value()];
    if (found == nullptr || (!found->layout.partial.empty() && value.layout.partial.empty())) found = &value;
  }
  return values;
}

}  // namespace

ExportedPlan exported_plan(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  ExportedPlan exported;
  std::map<TensorId, const ProgramValue*> stored;
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    const ProgramValue& value = plan.program.values[binding.value];
    stored.emplace(binding.tensor, &value);
    const ExportedTensor entry{tensor.name, tensor.type, value.layout};
    if (tensor.kind == TensorKind::kInput) exported.inputs.push_back(entry);
    if (tensor.kind == TensorKind::kParameter) exported.parameters.push_back(entry);
  }
  std::map<TensorId, char> named;  // states that stand under their parameter's name
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (!tensor.updates || !tensor.producer || graph.tensor(*tensor.updates).kind != TensorKind::kParameter) continue;
    std::vector<TensorId> states;
    for (const TensorId operand : graph.operators()[*tensor.producer].operands) {
      // A step count is no state of this parameter alone.
      if (graph.tensor(operand).kind == TensorKind::kState &&
          graph.tensor(operand).type.shape == graph.tensor(*tensor.updates).type.shape && stored.contains(operand)) {
        states.push_back(operand);
      }
    }
    const bool alike = !states.empty() && std::all_of(states.begin(), states.end(), [&](TensorId state) {
      return stored.at(state)->layout == stored.at(states[0])->layout;
    });
    if (!alike) continue;
    exported.states.push_back(
        {graph.tensor(*tensor.updates).name, graph.tensor(states[0]).type, stored.at(states[0])->layout});
    for (const TensorId state : states) named[state] = 1;
  }
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    if (tensor.kind == TensorKind::kState && !named.contains(binding.tensor)) {
      exported.states.push_back({tensor.name, tensor.type, plan.program.values[binding.value].layout});
    }
  }
  const std::vector<const ProgramValue*> whole = whole_values(plan);
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const OperatorType& type = *graph.operation(id).type;
    if (op.pass != Pass::kForward || (type.work != WorkKind::kContraction && type.role != OperatorRole::kLookup))
      continue;
    for (const TensorId result : op.results) {
      if (const ProgramValue* value = whole[result.value()]; value != nullptr) {
        exported.constraints.push_back({graph.tensor(result).name, value->type, value->layout});
      }
    }
  }
  for (const Binding& binding : plan.program.outputs) {
    const ProgramValue& value = plan.program.values[binding.value];
    exported.outputs.push_back({graph.tensor(binding.tensor).name, value.type, value.layout});
  }
  return exported;
}

RefinedAxes exported_axes(const Plan& plan, const ExportedPlan& exported) {
  std::vector<AxisRef> refs;
  for (const auto* list :
       {&exported.inputs, &exported.parameters, &exported.states, &exported.constraints, &exported.outputs}) {
    for (const ExportedTensor& tensor : *list) {
      const std::vector<AxisRef> axes = axes_of(tensor.layout);
      refs.insert(refs.end(), axes.begin(), axes.end());
    }
  }
  for (const OperatorId op : plan.graph->operators().ids()) {
    if (plan.graph->operators()[op].pass != Pass::kForward) continue;
    for (const std::vector<AxisRef>& factor : plan.strategies[op].factors) {
      refs.insert(refs.end(), factor.begin(), factor.end());
    }
  }
  return RefinedAxes(plan.mesh, refs);
}

std::optional<std::vector<std::vector<std::string>>> dimension_axes(const TensorLayout& layout, const RefinedAxes& axes,
                                                                    std::string* why) {
  if (!layout.partial.empty()) {
    *why = "a tensor that is stored or constrained is never partial";
    return std::nullopt;
  }
  std::vector<std::vector<std::string>> result;
  for (const DimensionLayout& dimension : layout.dimensions) {
    if (dimension.is_sharded() && dimension.parts.size() != 1) {
      *why = "a dimension is sharded in parts";
      return std::nullopt;
    }
    std::vector<std::string> names;
    for (const DimensionPart& part : dimension.parts) {
      for (const AxisRef& ref : part.axes) {
        const auto found = axes.find(ref);
        if (!found) {
          *why = "one axis is split in ways that do not divide each other";
          return std::nullopt;
        }
        for (const std::size_t i : *found) names.push_back(axes.axes()[i].name);
      }
    }
    result.push_back(std::move(names));
  }
  return result;
}

std::vector<ExportedEntry> fold_entries(const std::vector<ExportedEntry>& entries) {
  std::map<std::string, std::vector<std::size_t>> copies;
  for (std::size_t i = 0; i < entries.size(); ++i) copies[folded_name(entries[i].name)].push_back(i);
  std::vector<ExportedEntry> result;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string folded = folded_name(entries[i].name);
    const std::vector<std::size_t>& same = copies[folded];
    const bool alike = same.size() > 1 && std::all_of(same.begin(), same.end(), [&](std::size_t other) {
                         return entries[other].value == entries[same[0]].value &&
                                entries[other].problem.empty() == entries[same[0]].problem.empty();
                       });
    if (!alike) {
      result.push_back(entries[i]);
    } else if (i == same[0]) {
      // A problem begins with the name of its tensor.
      std::string problem = entries[i].problem;
      if (problem.starts_with(entries[i].name)) problem = folded + problem.substr(entries[i].name.size());
      result.push_back({folded, entries[i].value, problem});
    }
  }
  return result;
}

std::string python_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string python_tuple(const std::vector<std::string>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

PythonMesh python_mesh(const RefinedAxes& axes) {
  std::vector<std::string> sizes, names;
  for (const RefinedAxes::Axis& axis : axes.axes()) {
    sizes.push_back(fmt::format("{}", axis.size));
    names.push_back(python_text(axis.name));
  }
  return {python_tuple(sizes), python_tuple(names)};
}

std::string python_dictionary(std::string_view variable, const std::vector<ExportedEntry>& entries,
                              std::vector<std::string>& cannot_say) {
  if (entries.empty()) return "";
  std::string text = fmt::format("{} = {{\n", variable);
  for (const ExportedEntry& entry : fold_entries(entries)) {
    if (entry.problem.empty()) {
      text += fmt::format("    {}: {},\n", python_text(entry.name), entry.value);
    } else {
      text += fmt::format("    # cannot be said: {}\n", entry.problem);
      cannot_say.push_back(entry.problem);
    }
  }
  return text + "}\n";
}

std::string export_title(const Plan& plan) {
  return fmt::format("{}, level {}, mesh {}", plan.graph->name(), number_of(plan.options.level), plan.mesh.to_string());
}

std::vector<std::string> export_targets() { return {"mindspore", "jax", "dtensor", "shardy"}; }

ExportedText export_plan(const Plan& plan, std::string_view target) {
  if (target == "mindspore") return export_mindspore(plan);
  if (target == "jax") return export_jax(plan);
  if (target == "dtensor") return export_dtensor(plan);
  if (target == "shardy") return export_shardy(plan);
  throw InputError({}, "--to takes mindspore, jax, dtensor or shardy; found '{}'", target);
}

}  // namespace shardplan
