// Layouts come from the program's values: of each tensor the first one that is whole. Copies of a repeat that agree are
// folded into one entry; copies that do not stay separate.
#include "report/export/exported_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/parse_number.h"
#include "graph/folded_names.h"
#include "graph/weights.h"
#include "layouts/layout_axes.h"
#include "model/syntax/settings_table.h"
#include "report/metrics/plan_metrics.h"

namespace shardplan {
namespace {

/// For each tensor the first value in which it is not partial, else its first value.
std::vector<const ProgramValue*> whole_values(const Plan& plan) {
  std::vector<const ProgramValue*> values(plan.graph->tensors().size(), nullptr);
  for (const ProgramValue& value : plan.program.values) {
    if (!value.tensor) continue;
    const ProgramValue*& found = values[value.tensor->value()];
    if (found == nullptr || (!found->layout->partial.empty() && value.layout->partial.empty())) found = &value;
  }
  return values;
}

/// Whether the plan redistributes something else than a weight before this operator. Then the layout of its result
/// does not follow from those of what it reads.
bool is_laid_out_anew(const Plan& plan, OperatorId id, const std::vector<const ProgramValue*>& whole) {
  const OperatorGraph& graph = *plan.graph;
  const GraphOperator& op = graph.operators()[id];
  const bool is_scalar = graph.tensor(op.results[0]).type.shape.empty();
  if (is_scalar || op.is_inserted || is_border(graph, id)) return false;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const ProgramValue* const value = whole[op.operands[i].value()];
    const bool is_parameter = graph.tensor(behind_casts(graph, op.operands[i])).kind == TensorKind::kParameter;
    if (value == nullptr || is_parameter) continue;
    const TensorLayout read = operand_layout(graph.operation(id), plan.strategies[id], plan.mesh, i);
    if (read.dimensions != value->layout->dimensions) return true;
  }
  return false;
}

}  // namespace

void refuse_own_tensors(const OperatorGraph& graph) {
  for (const GraphTensor& tensor : graph.tensors()) {
    if (!tensor.layerwise_parallel) continue;
    throw InputError(tensor.place,
                     "export: {}: its values differ per device (layerwise_parallel, batch_norm: local); an "
                     "export can only describe one tensor with one layout",
                     tensor.name);
  }
}

ExportedPlan exported_plan(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  refuse_own_tensors(graph);
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
  // States are listed under their parameter's name if all have the same layout, otherwise each under its own. Scalars,
  // such as the step count, are replicated everywhere.
  std::map<TensorId, std::vector<TensorId>> states;
  std::vector<TensorId> parameters;
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    if (tensor.kind != TensorKind::kState || tensor.type.shape.empty()) continue;
    const TensorId owner = tensor.state_of.value_or(binding.tensor);
    if (!states.contains(owner)) parameters.push_back(owner);
    states[owner].push_back(binding.tensor);
  }
  for (const TensorId owner : parameters) {
    const std::vector<TensorId>& of_owner = states.at(owner);
    const TensorLayout& first = stored.at(of_owner[0])->layout;
    const bool alike = std::all_of(of_owner.begin(), of_owner.end(), [&](TensorId state) {
      return graph.tensor(state).type.shape == graph.tensor(owner).type.shape && stored.at(state)->layout == first;
    });
    if (alike) {
      exported.states.push_back({graph.tensor(owner).name, graph.tensor(of_owner[0]).type, first});
      continue;
    }
    for (const TensorId state : of_owner) {
      exported.states.push_back({graph.tensor(state).name, graph.tensor(state).type, stored.at(state)->layout});
    }
  }
  const std::vector<const ProgramValue*> whole = whole_values(plan);
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const OperatorType& type = *graph.operation(id).type;
    if (op.pass != Pass::kForward || op.results.empty()) continue;
    const bool decides = type.work == WorkKind::kContraction || type.role == OperatorRole::kLookup;
    if (!decides && !is_laid_out_anew(plan, id, whole)) continue;
    // Other results of a contraction (the lse of attention) are read by its gradient only: no framework returns them.
    const TensorId result = op.results[0];
    if (const ProgramValue* value = whole[result.value()]; value != nullptr) {
      exported.constraints.push_back({op.name, value->type, value->layout});
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

std::string unequal_pieces(const ExportedTensor& tensor) {
  for (std::size_t d = 0; d < tensor.layout.dimensions.size(); ++d) {
    const std::int64_t pieces = tensor.layout.dimensions[d].num_pieces();
    if (tensor.type.shape[d] % pieces != 0) {
      return fmt::format("dimension {} of size {} is not in {} equal pieces", d, tensor.type.shape[d], pieces);
    }
  }
  return "";
}

namespace {

/// The numbers in a name, which may be indices of copies: {3} for "layers.3.up.weight".
std::vector<std::int64_t> indices_of(std::string_view name) {
  std::vector<std::int64_t> indices;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (const auto index = parse_number<std::int64_t>(part)) indices.push_back(*index);
  }
  return indices;
}

/// For each position the values of the copies' indices there; nothing if the copies are not all combinations of these.
std::optional<std::vector<std::vector<std::int64_t>>> grid_of(const std::vector<std::vector<std::int64_t>>& copies) {
  std::vector<std::set<std::int64_t>> values(copies[0].size());
  for (const std::vector<std::int64_t>& copy : copies) {
    if (copy.size() != values.size()) return std::nullopt;
    for (std::size_t i = 0; i < copy.size(); ++i) values[i].insert(copy[i]);
  }
  std::size_t combinations = 1;
  std::vector<std::vector<std::int64_t>> grid;
  for (const std::set<std::int64_t>& set : values) {
    combinations *= set.size();
    grid.emplace_back(set.begin(), set.end());
  }
  if (combinations != copies.size()) return std::nullopt;
  return grid;
}

}  // namespace

std::vector<ExportedEntry> fold_entries(const std::vector<ExportedEntry>& entries) {
  std::map<std::string, std::vector<std::size_t>> copies;
  for (std::size_t i = 0; i < entries.size(); ++i) copies[folded_name(entries[i].name)].push_back(i);
  std::map<std::string, std::optional<std::vector<std::vector<std::int64_t>>>> grids;
  for (const auto& [folded, same] : copies) {
    const ExportedEntry& first = entries[same[0]];
    const bool alike =
        same.size() > 1 && std::all_of(same.begin(), same.end(), [&](std::size_t other) {
          return entries[other].value == first.value && entries[other].problem.empty() == first.problem.empty();
        });
    std::vector<std::vector<std::int64_t>> indices;
    for (const std::size_t i : same) indices.push_back(indices_of(entries[i].name));
    grids[folded] = alike ? grid_of(indices) : std::nullopt;
  }
  std::vector<ExportedEntry> result;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string folded = folded_name(entries[i].name);
    const auto& grid = grids.at(folded);
    if (!grid) {
      result.push_back(entries[i]);
    } else if (i == copies.at(folded)[0]) {
      // A problem's text begins with the name of its tensor.
      std::string problem = entries[i].problem;
      if (problem.starts_with(entries[i].name)) problem = folded + problem.substr(entries[i].name.size());
      result.push_back({folded, entries[i].value, problem, *grid});
    }
  }
  return result;
}

std::vector<std::string> left_to_the_program(const Plan& plan) {
  std::vector<std::string> result;
  if (!plan.graph->is_training()) return result;
  if (plan.graph->micro_batches() > 1) {
    result.push_back(fmt::format("gradients are summed over {} micro-batches", plan.graph->micro_batches()));
  }
  if (std::optional<std::string> recomputed = recomputed_operators(plan)) result.push_back(*std::move(recomputed));
  if (std::optional<std::string> untrained = untrained_weights(plan)) result.push_back(*std::move(untrained));
  return result;
}

std::vector<std::string> recomputed_names(const Plan& plan) {
  if (!plan.model || !plan.model->training) return {};
  const std::vector<std::string>& listed = plan.model->training->recompute;
  // A listed block may be one around what is marked.
  const auto is_listed = [&](std::string_view scope) {
    while (true) {
      if (std::ranges::any_of(listed, [&](const auto& name) { return matches_name(name, scope); })) return true;
      const std::size_t dot = scope.rfind('.');
      if (dot == std::string_view::npos) return false;
      scope = scope.substr(0, dot);
    }
  };
  std::vector<ExportedEntry> others;
  for (const std::string& scope : recomputed_scopes(*plan.graph)) {
    if (!is_listed(scope)) others.push_back({scope, "", ""});
  }
  std::vector<std::string> names = listed;
  for (const ExportedEntry& entry : fold_entries(others)) names.push_back(entry.name);
  return names;
}

std::vector<std::string> recomputed_scopes(const OperatorGraph& graph) {
  std::vector<std::string> scopes;
  std::set<std::string> known;
  for (const GraphOperator& op : graph.operators()) {
    if (op.pass != Pass::kForward || op.recompute_scope.empty()) continue;
    if (known.insert(op.recompute_scope.str()).second) scopes.push_back(op.recompute_scope.str());
  }
  return scopes;
}

std::optional<std::string> recomputed_operators(const Plan& plan) {
  const std::vector<std::string> names = recomputed_names(plan);
  if (names.empty()) return std::nullopt;
  return fmt::format("recomputed in the backward pass: {}", fmt::join(names, ", "));
}

std::optional<std::string> untrained_weights(const Plan& plan) {
  constexpr std::size_t kMostNamed = 3;
  const OperatorGraph& graph = *plan.graph;
  if (!graph.is_training()) return std::nullopt;
  std::set<TensorId> weights;
  for (const OperatorId op : graph.operators().ids()) {
    if (!multiplies_weight(graph, op)) continue;
    for (const TensorId operand : graph.operators()[op].operands) {
      const std::optional<TensorId> weight = stored_weight(graph, operand);
      if (weight && !graph.tensor(*weight).requires_grad) weights.insert(*weight);
    }
  }
  std::vector<std::string> names;
  for (const TensorId weight : weights) {
    std::string name = folded_name(graph.tensor(weight).name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  if (names.empty()) return std::nullopt;
  const std::size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  return fmt::format("not trained: {}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string export_title(const Plan& plan) {
  return fmt::format("{}, level {}, mesh {}", plan.graph->name(), number_of(plan.options.level), mesh_words(plan.mesh));
}

}  // namespace shardplan
