#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

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

/// By axis of the mesh the number of slices, tori that outer levels join, over which it goes; nothing if the cluster is no torus
/// or slices are no outer factors of the axes.
std::optional<std::vector<std::int64_t>> across_slices(const Plan& plan, const RefinedAxes& axes) {
  std::int64_t slices = 1;
  bool is_torus = false;
  for (const ClusterLevel& level : plan.cluster.levels) {
    if (level.count == 1) continue;
    if (level.topology != Topology::kSwitch) {
      is_torus = true;
    } else if (is_torus) {
      return std::nullopt;
    } else {
      slices *= level.count;
    }
  }
  if (!is_torus || !plan.mesh.devices().empty()) return std::nullopt;
  std::vector<std::int64_t> across;
  for (const RefinedAxes::Axis& axis : axes.axes()) {
    across.push_back(std::gcd(axis.size, slices));
    slices /= across.back();
    if (slices > 1 && across.back() != axis.size) return std::nullopt;
  }
  return across;
}

/// The lines that arrange the devices: JAX itself places axes along the dimensions of a torus; elsewhere devices are in the order
/// of their ranks.
struct MeshLines {
  std::string import;
  std::string mesh;
};
MeshLines mesh_lines(const Plan& plan, const RefinedAxes& axes) {
  const PythonMesh mesh = python_mesh(axes);
  const std::optional<std::vector<std::int64_t>> across = across_slices(plan, axes);
  if (!across) {
    const std::string order =
        plan.mesh.devices().empty() ? "" : fmt::format("[[{}]]", fmt::join(plan.mesh.devices(), ", "));
    return {"import numpy",
            fmt::format("devices = numpy.array(jax.devices()){}\nmesh = Mesh(devices.reshape({}), {})\n", order,
                        mesh.sizes, mesh.names)};
  }
  std::vector<std::int64_t> inside;
  for (std::size_t i = 0; i < across->size(); ++i) inside.push_back(axes.axes()[i].size / (*across)[i]);
  const bool is_one = std::ranges::all_of(*across, [](std::int64_t size) { return size == 1; });
  const std::string arguments =
      is_one ? fmt::format("create_device_mesh({}", mesh.sizes)
             : fmt::format("create_hybrid_device_mesh({}, {}", python_tuple(inside), python_tuple(*across));
  return {"from jax.experimental import mesh_utils",
          fmt::format("devices = mesh_utils.{}, allow_split_physical_axes=True)\nmesh = Mesh(devices, {})\n", arguments,
                      mesh.names)};
}

}  // namespace

ExportedText export_jax(const Plan& plan) {
  const ExportedPlan exported = exported_plan(plan);
  const RefinedAxes axes = exported_axes(plan, exported);
  const auto collectives = std::count_if(plan.program.instructions.begin(), plan.program.instructions.end(),
                                         [](const Instruction& instruction) { return is_communication(instruction); });
  ExportedText result;
  result.text = python_comment(export_title(plan));
  result.text += kJaxHowTo;
  result.text += python_refusals(left_to_the_program(plan), result.cannot_say);
  if (collectives > 0) {
    result.text +=
        fmt::format("# The {} follow{} from the shardings; order and overlap are XLA's and cannot be expressed here.\n",
                    counted(collectives, "collective"), collectives == 1 ? "s" : "");
  }
  const MeshLines lines = mesh_lines(plan, axes);
  result.text += fmt::format(
      "import jax\n"
      "{}\n"
      "from jax.sharding import Mesh, NamedSharding, PartitionSpec\n\n"
      "{}\n\n"
      "def S(*axes):\n"
      "    return NamedSharding(mesh, PartitionSpec(*axes))\n\n\n",
      lines.import, lines.mesh);
  const auto table = [&](std::string_view variable, const std::vector<ExportedTensor>& tensors, bool are_stored) {
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : tensors) entries.push_back(named_sharding(tensor, axes, plan, are_stored));
    result.text += python_dictionary(variable, entries, result.cannot_say);
  };
  table("INPUTS", exported.inputs, true);
  table("PARAMETERS", exported.parameters, true);
  result.text += "# of the optimizer, by parameter; its scalars are replicated\n";
  table("STATES", exported.states, true);
  result.text += "# of results, by operator: its first result\n";
  table("CONSTRAINTS", exported.constraints, false);
  result.text += kJaxFunctions;
  return result;
}

}  // namespace shardplan
