#include "report/metrics/collective_groups.h"

#include <algorithm>
#include <map>

#include "program/instruction_facts.h"
#include "report/text/origin_words.h"

namespace shardplan {

std::vector<CollectiveGroup> costliest_collectives(const Plan& plan) {
  std::map<std::string, std::size_t> position;
  std::vector<CollectiveGroup> groups;
  for (std::size_t i = 0; i < plan.program.instructions.size(); ++i) {
    const Instruction& instruction = plan.program.instructions[i];
    if (!is_communication(instruction)) continue;
    CollectiveGroup group;
    if (instruction.kind == InstructionKind::kSend) {
      group.what = "send";
      group.axes = workers_text(plan.program, instruction);
    } else if (instruction.kind == InstructionKind::kHalo) {
      std::vector<AxisRef> axes;
      for (const Halo& halo : instruction.halo) axes.insert(axes.end(), halo.axes.begin(), halo.axes.end());
      group.what = "halo exchange";
      group.axes = plan.mesh.to_string(axes);
    } else {
      group.what = to_string(instruction.step->kind);
      group.axes = plan.mesh.to_string(instruction.step->axes);
    }
    group.from = origin_words(plan, instruction);
    group.first = i;
    const auto [found, is_new] = position.try_emplace(group.what + group.axes + group.from, groups.size());
    if (is_new) groups.push_back(group);
    CollectiveGroup& sum = groups[found->second];
    sum.count += static_cast<std::size_t>(instruction.runs);
    sum.bytes += instruction.runs * group_bytes(plan.program, instruction);
    sum.time += instruction.time_of_step();
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.time > b.time; });
  return groups;
}

}  // namespace shardplan
