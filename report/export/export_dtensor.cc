// DTensor has one placement for each axis of the mesh. The plan for `parallelize_module` is a dictionary from a
// module's name to a ParallelStyle. PyTorch's styles support one axis and two kinds of modules, so the exported file
// defines its own style, which takes placements over the whole mesh.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/folded_names.h"
#include "report/export/export.h"
#include "report/export/exported_plan.h"
#include "report/export/python_text.h"

namespace shardplan {
namespace {

constexpr std::string_view kDTensorHowTo =
    "# How to use it, as plan.py, with torchrun and one process per device:\n"
    "#   model = parallelize_module(model, plan.mesh[plan.mesh.mesh_dim_names[0]], plan.PLAN)\n"
    "#   x = distribute_tensor(x, plan.mesh, plan.INPUTS[\"NAME\"])\n"
    "# parallelize_module asks for one axis; the styles below place over the whole mesh. '*' in a module's name is "
    "its\n"
    "# wildcard: every copy of a repeat. gamma, beta, embedding_table, moving_mean and moving_variance have their "
    "names\n"
    "# in torch.nn: weight, bias, weight, running_mean and running_var. The last two are buffers and stay buffers.\n"
    "# Where DTensor cannot place a stored tensor as the plan does, a comment says so, and the nearest placement is "
    "taken.\n"
    "# How a module's inner operators follow, and the order and overlap of collectives, are DTensor's and cannot be\n"
    "# expressed here.\n";

constexpr std::string_view kPlacedStyle = R"(

class Placed(ParallelStyle):
    """A module's own parameters and buffers placed over the whole mesh, and its result if the plan says how it lies."""

    def __init__(self, tensors, result=None):
        super().__init__()
        self.tensors = tensors
        self.result = result

    def _apply(self, module, device_mesh):
        for name, placements in self.tensors.items():
            whole = getattr(module, name)
            placed = distribute_tensor(whole, mesh, placements)
            if isinstance(whole, torch.nn.Parameter):
                placed = torch.nn.Parameter(placed, requires_grad=whole.requires_grad)
            setattr(module, name, placed)
        if self.result is not None:
            module.register_forward_hook(lambda _, inputs, result: result.redistribute(mesh, self.result))
        return module


)";

/// One placement for each axis of the mesh, "(Replicate(), Shard(0))"; empty, with the reason in `why`, if there are
/// none.
std::optional<std::string> placements(const ExportedTensor& tensor, const RefinedAxes& axes, std::string* why) {
  const auto dimensions = dimension_axes(tensor.layout, axes, why);
  if (!dimensions) return std::nullopt;
  std::vector<std::string> items(axes.axes().size(), "Replicate()");
  for (std::size_t d = 0; d < dimensions->size(); ++d) {
    std::size_t last = 0;
    for (const std::string& name : (*dimensions)[d]) {
      std::size_t at = 0;
      while (axes.axes()[at].name != name) ++at;
      if (at < last) {
        *why = "DTensor nests left to right";
        return std::nullopt;
      }
      last = at;
      items[at] = fmt::format("Shard({})", d);
    }
    if ((*dimensions)[d].size() > 1 && tensor.type.shape[d] % tensor.layout.dimensions[d].num_pieces() != 0) {
      *why = "DTensor cuts unequal pieces of unequal pieces";
      return std::nullopt;
    }
  }
  return python_tuple(items);
}

/// The placements closest to a layout that DTensor cannot express: a dimension is cut by the same axes in the order of
/// the mesh, or by the first of them if their pieces are unequal, or not at all if no list of axes cuts it so.
std::string nearest_placements(const ExportedTensor& tensor, const RefinedAxes& axes) {
  std::vector<std::string> items(axes.axes().size(), "Replicate()");
  for (std::size_t d = 0; d < tensor.type.shape.size(); ++d) {
    std::string why;
    TensorLayout along = TensorLayout::replicated(tensor.type.shape.size());
    along.dimensions[d] = tensor.layout.dimensions[d];
    const auto names = dimension_axes(along, axes, &why);
    if (!names) continue;
    std::int64_t pieces = 1;
    for (std::size_t at = 0; at < axes.axes().size(); ++at) {
      const RefinedAxes::Axis& axis = axes.axes()[at];
      if (std::ranges::find((*names)[d], axis.name) == (*names)[d].end()) continue;
      if (pieces > 1 && tensor.type.shape[d] % (pieces * axis.size) != 0) break;
      pieces *= axis.size;
      items[at] = fmt::format("Shard({})", d);
    }
  }
  return python_tuple(items);
}

std::string dtensor_problem(const ExportedTensor& tensor, const std::string& why, const Plan& plan) {
  return fmt::format("{} {}; {}", tensor.name, to_string(tensor.layout, plan.mesh), why);
}

/// The block that contains a tensor or operator: "layers.0.up" for "layers.0.up.weight"; empty for one of the model
/// itself.
std::string_view module_block(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string torch_name(std::string_view parameter) {
  const std::string_view last = last_part(parameter);
  if (last == "gamma" || last == "embedding_table") return "weight";
  if (last == "beta") return "bias";
  if (last == "moving_mean") return "running_mean";
  if (last == "moving_variance") return "running_var";
  return std::string(last);
}

/// What DTensor refuses or gets wrong in a convolution; empty if nothing. It looks at the last dimension alone, whatever is
/// sharded, and passes rims around a ring of all ranks (torch/distributed/tensor/_tp_conv.py of 2026).
std::string convolution_problem(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh) {
  if (operation.type->work != WorkKind::kContraction || operation.operands.empty()) return {};
  const TensorWalk& input = operation.rule.operands[0];
  if (input.empty() || !input.back().window) return {};
  for (std::size_t d = 0; d < input.size(); ++d) {
    if (!input[d].window) continue;
    const std::int64_t pieces = num_pieces(strategy.factors[input[d].window->output]);
    if (pieces == 1 || (d + 1 == input.size() && pieces == mesh.num_devices())) continue;
    return fmt::format("dimension {} in {}; DTensor passes rims of the last dimension only, around a ring of all ranks",
                       d, pieces);
  }
  const Window& last = *input.back().window;
  const std::int64_t kernel = operation.rule.factors[last.offset].size;
  if (last.dilation != 1) return fmt::format("dilation {}; DTensor's convolution takes 1", last.dilation);
  const bool is_padded = last.pad_before > 0 || last.pad_after > 0;
  if (is_padded && last.stride != 1)
    return fmt::format("stride {} with padding; DTensor's convolution takes 1", last.stride);
  if (!is_padded && last.stride != kernel) {
    return fmt::format("stride {} of a kernel of {} without padding; DTensor's convolution wants them equal",
                       last.stride, kernel);
  }
  return {};
}

/// The exported entries of one module.
struct TorchModule {
  std::vector<std::string> tensors;  // parameters and buffers: "\"weight\": (Shard(0),)"
  std::string result;                // placements; empty if unconstrained
};

class DTensorWriter {
 public:
  explicit DTensorWriter(const Plan& plan)
      : plan_(plan), exported_(exported_plan(plan)), axes_(exported_axes(plan, exported_)) {}

  ExportedText run() {
    const PythonMesh mesh = python_mesh(axes_);
    result_.text = python_comment(export_title(plan_));
    result_.text += kDTensorHowTo;
    result_.text += python_refusals(left_to_the_program(plan_), result_.cannot_say);
    result_.text += fmt::format(
        "import torch\n"
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.tensor import Replicate, Shard, distribute_tensor\n"
        "from torch.distributed.tensor.parallel import ParallelStyle\n\n"
        "mesh = init_device_mesh(\"cuda\", {}, mesh_dim_names={})\n",
        mesh.sizes, mesh.names);
    if (!plan_.mesh.devices().empty()) {
      refuse(fmt::format("the order of the devices {}; init_device_mesh counts them",
                         fmt::join(plan_.mesh.devices(), ", ")));
    }
    result_.text += kPlacedStyle;
    table("INPUTS", exported_.inputs);
    write_modules();
    refuse_convolutions();
    result_.text +=
        "# of the optimizer, by parameter. Torch lays a state out as its parameter: where these differ, redistribute "
        "the\n"
        "# state to them after its first step.\n";
    table("STATES", exported_.states);
    return result_;
  }

 private:
  void refuse(const std::string& what) {
    result_.text += python_comment("cannot be expressed: " + what);
    result_.cannot_say.push_back(what);
  }

  /// The placements of a stored tensor. Those that are only nearest are a problem, said once for a parameter and states
  /// that are stored alike. PyTorch rejects operators on plain tensors beside DTensors, so there is always a placement.
  ExportedEntry stored(const ExportedTensor& tensor) {
    std::string why;
    if (const auto placed = placements(tensor, axes_, &why)) return {tensor.name, *placed, ""};
    std::string problem = dtensor_problem(tensor, why, plan_);
    if (!said_.insert(problem).second) problem.clear();
    return {tensor.name, nearest_placements(tensor, axes_), problem};
  }

  void table(std::string_view variable, const std::vector<ExportedTensor>& tensors) {
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : tensors) entries.push_back(stored(tensor));
    result_.text += python_dictionary(variable, entries, result_.cannot_say);
  }

  void refuse_convolutions() {
    std::vector<ExportedEntry> problems;
    for (const OperatorId op : plan_.graph->operators().ids()) {
      const GraphOperator& info = plan_.graph->operators()[op];
      if (info.pass != Pass::kForward) continue;
      const std::string problem = convolution_problem(plan_.graph->operation(op), plan_.strategies[op], plan_.mesh);
      if (!problem.empty()) problems.push_back({info.name, "", fmt::format("{}: {}", info.name.str(), problem)});
    }
    for (const ExportedEntry& entry : fold_entries(problems)) refuse(entry.problem);
  }

  TorchModule& module(const std::string& name) {
    const auto [found, is_new] = modules_.try_emplace(name);
    if (is_new) order_.push_back(name);
    return found->second;
  }

  /// The module whose result an operator produces: the block if it has its own parameters, as nn.Linear has, else the
  /// operator.
  std::string module_of_result(const std::string& op) const {
    const std::string block(module_block(op));
    return blocks_.contains(block) ? block : op;
  }

  void write_modules() {
    std::vector<ExportedTensor> of_model;  // parameters outside any module
    std::vector<ExportedEntry> problems;
    for (const ExportedTensor& tensor : exported_.parameters) {
      const std::string block(module_block(tensor.name));
      if (block.empty()) {
        of_model.push_back(tensor);
        continue;
      }
      blocks_.insert(block);
      const ExportedEntry entry = stored(tensor);
      module(block).tensors.push_back(fmt::format("{}: {}", python_text(torch_name(tensor.name)), entry.value));
      if (!entry.problem.empty()) problems.push_back({tensor.name, "", entry.problem});
    }
    // If several results of one module are constrained, the last one is the module's result.
    for (const ExportedTensor& tensor : exported_.constraints) {
      std::string why;
      const auto placed = placements(tensor, axes_, &why);
      if (placed) {
        module(module_of_result(tensor.name)).result = *placed;
      } else {
        problems.push_back({tensor.name, "", dtensor_problem(tensor, why, plan_)});
      }
    }
    std::vector<ExportedEntry> entries;
    for (const std::string& name : order_) {
      const TorchModule& of_name = modules_.at(name);
      std::string value = fmt::format("Placed({{{}}}", fmt::join(of_name.tensors, ", "));
      value += of_name.result.empty() ? ")" : fmt::format(", {})", of_name.result);
      entries.push_back({name, value, ""});
    }
    result_.text += "PLAN = {\n";
    for (const ExportedEntry& entry : fold_entries(entries)) {
      result_.text += fmt::format("    {}: {},\n", python_text(entry.name), entry.value);
    }
    for (const ExportedEntry& entry : fold_entries(problems)) {
      result_.text += "    ";
      refuse(entry.problem);
    }
    result_.text += "}\n";
    if (of_model.empty()) return;
    result_.text += "# parameters of the model itself, for distribute_tensor\n";
    table("PARAMETERS", of_model);
  }

  const Plan& plan_;
  const ExportedPlan exported_;
  const RefinedAxes axes_;
  ExportedText result_;
  std::map<std::string, TorchModule> modules_;
  std::vector<std::string> order_;  // keys of `modules_` in order
  std::set<std::string> blocks_;    // with their own parameters
  std::set<std::string> said_;      // problems of stored tensors
};

}  // namespace

ExportedText export_dtensor(const Plan& plan) { return DTensorWriter(plan).run(); }

}  // namespace shardplan
