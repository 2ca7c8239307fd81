#include "report/export/kept_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "program/instruction_facts.h"
#include "report/text/origin_words.h"

namespace shardplan {

KeptTypes kept_types(const OperatorGraph& graph) {
  KeptTypes types;
  std::set<DataType> gradients, moments;
  for (const GraphOperator& op : graph.operators()) {
    if (op.pass != Pass::kUpdate || !op.parameter || op.operands.size() < 2) continue;
    const Shape& shape = graph.tensor(*op.parameter).type.shape;
    gradients.insert(graph.tensor(op.operands.back()).type.dtype);
    const GraphTensor& updated = graph.tensor(op.operands[0]);
    const bool is_weight = updated.kind == TensorKind::kParameter;
    if (is_weight && element_bytes(updated.type.dtype) < 4) types.narrow_weights = updated.type.dtype;
    for (const TensorId id : op.operands) {
      const GraphTensor& tensor = graph.tensor(id);
      const bool is_moment = tensor.kind == TensorKind::kState && !tensor.is_master_copy;
      if (is_moment && tensor.type.shape == shape) moments.insert(tensor.type.dtype);
    }
  }
  const auto one_of = [&](const std::set<DataType>& found, const char* what) -> std::optional<DataType> {
    if (found.size() == 1) return *found.begin();
    std::vector<std::string_view> names;
    for (const DataType type : found) names.push_back(to_string(type));
    if (found.size() > 1)
      types.differences.push_back(fmt::format("{} are kept as {}", what, fmt::join(names, " and ")));
    return std::nullopt;
  };
  types.gradients = one_of(gradients, "gradients");
  types.moments = one_of(moments, "moments");
  return types;
}

bool is_short(const std::optional<DataType>& type) { return type && element_bytes(*type) < 4; }

std::optional<DataType> short_sums(const Plan& plan, const KeptTypes& kept) {
  if (!kept.gradients || is_short(kept.gradients)) return std::nullopt;
  std::map<DataType, double> bytes;
  double all = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.kind != InstructionKind::kCollective || moved_words(plan, instruction) != "gradients") continue;
    const CollectiveKind kind = instruction.step->kind;
    if (kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kReduceScatter) continue;
    const auto moved = static_cast<double>(group_bytes(plan.program, instruction));
    bytes[plan.program.values[instruction.inputs[0]].type.dtype] += moved;
    all += moved;
  }
  for (const auto& [type, moved] : bytes) {
    if (element_bytes(type) < 4 && 2 * moved >= all) return type;
  }
  return std::nullopt;
}

}  // namespace shardplan
