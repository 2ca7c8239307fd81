#include "report/plan/fusion_report.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "program/buckets.h"
#include "report/text/text_table.h"

namespace shardplan {

std::string bucket_name(const ParallelProgram& program, std::uint32_t fusion) {
  const Bucket& bucket = program.buckets[fusion - 1];
  return fmt::format("{}: {} {} in one", program.values[bucket.buffer].name, bucket.members, to_string(bucket.kind));
}

std::vector<std::string> fusion_ids(const Plan& plan) {
  std::map<TensorId, std::uint32_t> buckets;
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.fusion == 0) continue;
    if (const auto parameter = parameter_of(*plan.graph, plan.program, instruction)) {
      buckets.emplace(*parameter, instruction.fusion);
    }
  }
  std::vector<std::string> lines;
  bool has_ids = false;
  for (const TensorId id : plan.graph->tensors().ids()) {
    const GraphTensor& tensor = plan.graph->tensor(id);
    if (tensor.kind != TensorKind::kParameter || !tensor.requires_grad) continue;
    const auto bucket = buckets.find(id);
    if (tensor.comm_fusion) {
      has_ids = true;
      lines.push_back(fmt::format("The parameter {}'s fusion id is {}", tensor.name, *tensor.comm_fusion));
    } else if (bucket != buckets.end()) {
      lines.push_back(fmt::format("The parameter {} is in bucket {}", tensor.name, bucket->second));
    } else {
      lines.push_back(fmt::format("The parameter {} is in no bucket", tensor.name));
    }
  }
  return has_ids ? lines : std::vector<std::string>{};
}

std::string fusion_report(const Plan& plan) {
  const ParallelProgram& program = plan.program;
  std::string text;
  if (!program.buckets.empty()) {
    std::vector<Picoseconds> alone(program.buckets.size(), 0);
    for (const Instruction& instruction : program.instructions) {
      if (instruction.fusion > 0) alone[instruction.fusion - 1] += instruction.time;
    }
    using Align = TextTable::Align;
    TextTable table(
        {Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    table.add({"bucket", "kind", "group", "members", "MiB", "us", "us alone"});
    for (std::size_t i = 0; i < program.buckets.size(); ++i) {
      const Bucket& bucket = program.buckets[i];
      table.add({fmt::format("{}", i + 1), std::string(to_string(bucket.kind)), plan.mesh.to_string(bucket.axes),
                 fmt::format("{}", bucket.members),
                 fmt::format("{:.1f}", static_cast<double>(bucket.group_bytes) / (1 << 20)),
                 fmt::format("{:.1f}", static_cast<double>(bucket.time) / 1e6),
                 fmt::format("{:.1f}", static_cast<double>(alone[i]) / 1e6)});
    }
    text += "\n" + table.to_string(2);
  }
  const std::vector<std::string> ids = fusion_ids(plan);
  if (!ids.empty()) text += '\n';
  for (const std::string& line : ids) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace shardplan
