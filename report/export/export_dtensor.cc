#include <fmt/format.h>

#include "report/export/export.h"
#include "report/export/exported_plan.h"

namespace shardplan {
namespace {

/// One placement for each axis of the mesh: (Replicate(), Shard(0)).
ExportedEntry placements(const ExportedTensor& tensor, const RefinedAxes& axes, const Plan& plan) {
  const auto problem = [&](std::string_view why) {
    return ExportedEntry{tensor.name, "",
                         fmt::format("{} {}; {}", tensor.name, to_string(tensor.layout, plan.mesh), why)};
  };
  std::string why;
  const auto dimensions = dimension_axes(tensor.layout, axes, &why);
  if (!dimensions) return problem(why);
  std::vector<std::string> items(axes.axes().size(), "Replicate()");
  for (std::size_t d = 0; d < dimensions->size(); ++d) {
    std::size_t last = 0;
    for (const std::string& name : (*dimensions)[d]) {
      std::size_t at = 0;
      while (axes.axes()[at].name != name) ++at;
      if (at < last) return problem("DTensor nests left to right");
      last = at;
      items[at] = fmt::format("Shard({})", d);
    }
  }
  return {tensor.name, python_tuple(items), ""};
}

}  // namespace

ExportedText export_dtensor(const Plan& plan) {
  const ExportedPlan exported = exported_plan(plan);
  const RefinedAxes axes = exported_axes(plan, exported);
  const PythonMesh mesh = python_mesh(axes);
  ExportedText result;
  result.text = fmt::format(
      "# {}\n"
      "from torch.distributed.device_mesh import init_device_mesh\n"
      "from torch.distributed.tensor import Replicate, Shard\n"
      "mesh = init_device_mesh(\"cuda\", {}, mesh_dim_names={})\n",
      export_title(plan), mesh.sizes, mesh.names);
  if (!plan.mesh.devices().empty()) {
    const std::string order = fmt::format("the order of the devices {}", fmt::join(plan.mesh.devices(), ", "));
    result.text += fmt::format("# cannot be said: {}; init_device_mesh counts them\n", order);
    result.cannot_say.push_back(order);
  }
  const auto table = [&](std::string_view variable, const std::vector<ExportedTensor>& tensors) {
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : tensors) entries.push_back(placements(tensor, axes, plan));
    result.text += python_dictionary(variable, entries, result.cannot_say);
  };
  table("INPUTS", exported.inputs);
  table("PARAMETERS", exported.parameters);
  table("STATES", exported.states);
  if (!exported.constraints.empty()) result.text += "# to redistribute to, by the operator's result\n";
  table("CONSTRAINTS", exported.constraints);
  return result;
}

}  // namespace shardplan
