#include "report/metrics/padding_waste.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "model/model.h"

namespace shardplan {

PaddingWaste padding_waste(const Plan& plan) {
  PaddingWaste waste;
  const OperatorGraph& graph = *plan.graph;
  for (const MemoryProfile::Alive& alive : plan.memory.alive_at_peak) {
    const std::optional<TensorId>& tensor = plan.program.values[alive.value].tensor;
    if (!tensor || !graph.tensor(*tensor).padding) continue;
    const double real = static_cast<double>(num_elements(real_shape(*graph.tensor(*tensor).padding)));
    const double padded = static_cast<double>(num_elements(graph.tensor(*tensor).type.shape));
    waste.at_peak += std::llround(static_cast<double>(alive.bytes) * (1 - real / padded));
  }
  for (const Instruction& instruction : plan.program.instructions) {
    const bool is_mask = instruction.operation && instruction.operation->type->name == "MaskPadding";
    if (is_mask) waste.masks += instruction.time_of_step();
  }
  return waste;
}

std::vector<std::string> padded_dimensions(const Plan& plan, OperatorId id) {
  const GraphOperator& op = plan.graph->operators()[id];
  std::vector<TensorId> tensors = op.operands;
  tensors.insert(tensors.end(), op.results.begin(), op.results.end());
  std::vector<std::string> lines;
  for (const TensorId tensor : tensors) {
    const std::optional<PaddedShape>& padding = plan.graph->tensor(tensor).padding;
    for (std::size_t d = 0; padding && d < padding->size(); ++d) {
      if (!has_padding((*padding)[d])) continue;
      lines.push_back(
          fmt::format("dimension {} of {} is {}", d, plan.graph->tensor(tensor).name, to_string((*padding)[d])));
    }
  }
  return lines;
}

std::string padding_line(const Plan& plan) {
  if (plan.model == nullptr || plan.model->padded_dims.empty()) return {};
  std::vector<std::string> dims;
  for (const auto& [name, dim] : plan.model->padded_dims) {
    dims.push_back(fmt::format("{} {}", name, to_string(PaddedDimension{{dim.padded, dim.real}})));
  }
  const PaddingWaste waste = padding_waste(plan);
  return fmt::format("  padding     {}:\n              {} of the peak are padding, masks take {}\n",
                     fmt::join(dims, ", "), format_bytes(waste.at_peak), format_time(waste.masks));
}

}  // namespace shardplan
