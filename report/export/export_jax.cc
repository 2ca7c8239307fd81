#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "program/instruction_facts.h"
#include "report/export/export.h"
#include "report/export/exported_plan.h"
#include "report/export/python_text.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

constexpr std::string_view kJaxHowTo =
    "# How to use it, as plan.py beside your program:\n"
    "#   parameters = jax.device_put(parameters, plan.tree(parameters, plan.PARAMETERS))\n"
    "#   step = jax.jit(step)             and inside it, behind the operator of that name:\n"
    "#       x = plan.constrain(\"NAME\", x)\n"
    "# A tree of arrays uses the model's names: {\"layers\": [{\"up\": {\"weight\": ...}}]} holds "
    "layers.0.up.weight.\n";

constexpr std::string_view kJaxFunctions = R"(

def constrain(name, value):
    """Lays out the result of the operator of that name as the plan does; others are left to XLA."""
    return jax.lax.with_sharding_constraint(value, CONSTRAINTS[name]) if name in CONSTRAINTS else value


def tree(values, shardings):
    """The shardings of a tree of arrays, as a tree: each under its path, joined by dots."""

    def sharding(path, _):
        parts = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))) for key in path)
        return shardings[".".join(str(part) for part in parts)]

    return jax.tree_util.tree_map_with_path(sharding, values)
)";

/// S("pcie", None, ("hccs", "x")).
ExportedEntry named_sharding(const ExportedTensor& tensor, const RefinedAxes& axes, const Plan& plan, bool is_stored) {
  std::string why = is_stored ? unequal_pieces(tensor) : "";
  const auto dimensions = why.empty() ? dimension_axes(tensor.layout, axes, &why) : std::nullopt;
  if (!dimensions) {
    return {tensor.name, "", fmt::format("{} {}; {}", tensor.name, to_string(tensor.layout, plan.mesh), why)};
  }
  std::vector<std::string> entries;
  for (const std::vector<std::string>& names : *dimensions) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(python_text(name));
    entries.push_back(quoted.empty() ? "None" : quoted.size() == 1 ? quoted[0] : python_tuple(quoted));
  }
  return {tensor.name, fmt::format("S({})", fmt::join(entries, ", ")), ""};
}

}  // namespace

ExportedText export_jax(const Plan& plan) {
  const ExportedPlan exported = exported_plan(plan);
  const RefinedAxes axes = exported_axes(plan, exported);
  const PythonMesh mesh = python_mesh(axes);
  const auto collectives = std::count_if(plan.program.instructions.begin(), plan.program.instructions.end(),
                                         [](const Instruction& instruction) { return is_communication(instruction); });
  ExportedText result;
  result.text = python_comment(export_title(plan));
  result.text += kJaxHowTo;
  if (collectives > 0) {
    result.text +=
        fmt::format("# The {} follow{} from the shardings; order and overlap are XLA's and cannot be expressed here.\n",
                    counted(collectives, "collective"), collectives == 1 ? "s" : "");
  }
  result.text += fmt::format(
      "import jax\n"
      "import numpy\n"
      "from jax.sharding import Mesh, NamedSharding, PartitionSpec\n\n"
      "devices = numpy.array(jax.devices()){}\n"
      "mesh = Mesh(devices.reshape({}), {})\n\n\n"
      "def S(*axes):\n"
      "    return NamedSharding(mesh, PartitionSpec(*axes))\n\n\n",
      plan.mesh.devices().empty() ? "" : fmt::format("[[{}]]", fmt::join(plan.mesh.devices(), ", ")), mesh.sizes,
      mesh.names);
  const auto table = [&](std::string_view variable, const std::vector<ExportedTensor>& tensors, bool are_stored) {
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : tensors) entries.push_back(named_sharding(tensor, axes, plan, are_stored));
    result.text += python_dictionary(variable, entries, result.cannot_say);
  };
  table("INPUTS", exported.inputs, true);
  table("PARAMETERS", exported.parameters, true);
  result.text += "# of the optimizer, by parameter; its scalars are replicated\n";
  table("STATES", exported.states, true);
  result.text += "# of results, by operator\n";
  table("CONSTRAINTS", exported.constraints, false);
  result.text += kJaxFunctions;
  return result;
}

}  // namespace shardplan
