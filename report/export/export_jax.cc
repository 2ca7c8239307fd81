#include <fmt/format.h>

#include <algorithm>

#include "program/instruction_facts.h"
#include "report/export/export.h"
#include "report/export/exported_plan.h"
#include "report/metrics/plan_metrics.h"

namespace shardplan {
namespace {

/// P("pcie", None, ("hccs", "x")).
ExportedEntry partition_spec(const ExportedTensor& tensor, const RefinedAxes& axes, const Plan& plan) {
  std::string why;
  const auto dimensions = dimension_axes(tensor.layout, axes, &why);
  if (!dimensions) {
    return {tensor.name, "", fmt::format("{} {}; {}", tensor.name, to_string(tensor.layout, plan.mesh), why)};
  }
  std::vector<std::string> entries;
  for (const std::vector<std::string>& names : *dimensions) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(python_text(name));
    entries.push_back(quoted.empty() ? "None" : quoted.size() == 1 ? quoted[0] : python_tuple(quoted));
  }
  return {tensor.name, fmt::format("P({})", fmt::join(entries, ", ")), ""};
}

}  // namespace

ExportedText export_jax(const Plan& plan) {
  const ExportedPlan exported = exported_plan(plan);
  const RefinedAxes axes = exported_axes(plan, exported);
  const PythonMesh mesh = python_mesh(axes);
  const auto collectives = std::count_if(plan.program.instructions.begin(), plan.program.instructions.end(),
                                         [](const Instruction& instruction) { return is_communication(instruction); });
  ExportedText result;
  result.text = fmt::format(
      "# {}. The {} collectives follow from the shardings; their\n"
      "# order and overlap are XLA's and cannot be said here.\n"
      "import jax\n"
      "from jax.sharding import NamedSharding, PartitionSpec as P\n",
      export_title(plan), collectives);
  if (plan.mesh.devices().empty()) {
    result.text += fmt::format("mesh = jax.make_mesh({}, {})\n", mesh.sizes, mesh.names);
  } else {
    result.text += fmt::format(
        "import numpy\n"
        "devices = numpy.array(jax.devices())[[{}]]\n"
        "mesh = jax.sharding.Mesh(devices.reshape({}), {})\n",
        fmt::join(plan.mesh.devices(), ", "), mesh.sizes, mesh.names);
  }
  const auto table = [&](std::string_view variable, const std::vector<ExportedTensor>& tensors) {
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : tensors) entries.push_back(partition_spec(tensor, axes, plan));
    result.text += python_dictionary(variable, entries, result.cannot_say);
  };
  table("INPUTS", exported.inputs);
  table("PARAMETERS", exported.parameters);
  table("STATES", exported.states);
  if (!exported.constraints.empty())
    result.text += "# for jax.lax.with_sharding_constraint, by the operator's result\n";
  table("CONSTRAINTS", exported.constraints);
  return result;
}

}  // namespace shardplan
