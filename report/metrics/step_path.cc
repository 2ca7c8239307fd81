#include "report/metrics/step_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "program/instruction_facts.h"
#include "report/text/origin_words.h"

namespace shardplan {
namespace {

std::string class_of(const Plan& plan, const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::kSend:
      return "send";
    case InstructionKind::kHalo:
      return "halo exchange";
    case InstructionKind::kCollective:
      return fmt::format("{} of {}", to_string(instruction.step->kind), moved_words(plan, instruction));
    case InstructionKind::kConstant:
      return "elementwise";
    case InstructionKind::kOperator:
      break;
  }
  const OperatorType& type = *instruction.operation->type;
  if (instruction.pass == Pass::kUpdate) return "update";
  if (type.work != WorkKind::kContraction) return "elementwise";
  if (type.role == OperatorRole::kAttention) return "attention";
  return type.name.starts_with("Conv") ? "convolution" : "matmul";
}

}  // namespace

CriticalPath step_path(const Plan& plan) {
  return plan.is_overlapped && plan.program.workers == 1 ? critical_path(plan.program) : CriticalPath();
}

std::vector<PathClass> path_classes(const Plan& plan, const CriticalPath& path) {
  std::map<std::string, std::size_t> position;
  std::vector<PathClass> classes;
  for (std::size_t i = 0; i < path.shares.size(); ++i) {
    if (path.shares[i].time == 0) continue;
    const Instruction& instruction = plan.program.instructions[i];
    const std::string name = class_of(plan, instruction);
    const auto [found, is_new] = position.try_emplace(name, classes.size());
    if (is_new) classes.push_back({name});
    PathClass& sum = classes[found->second];
    sum.passes[static_cast<std::size_t>(instruction.pass)] += path.shares[i].time;
    sum.slowed += path.shares[i].slowed;
  }
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.time() > b.time(); });
  return classes;
}

}  // namespace shardplan
