#include "program/parallel_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

namespace shardplan {
namespace {

bool is_accumulating(const Instruction& instruction) {
  return instruction.runs > 1 && instruction.kind == InstructionKind::kOperator &&
         instruction.operation->type->accumulates;
}

bool is_computation(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOperator || instruction.kind == InstructionKind::kConstant;
}

/// One collective: whether its kind leads from the layout of its input to that of its output.
std::string check_collective(const Instruction& instruction, const ProgramValue& input, const ProgramValue& output) {
  const CollectiveStep& step = instruction.step;
  if (step.before != input.layout || step.after != output.layout) {
    return fmt::format("{}: its layouts are not those of its values", instruction.name);
  }
  if (input.type != output.type) return fmt::format("{}: changes the tensor's type", instruction.name);
  if (step.local_shape != output.local_shape) return fmt::format("{}: local shape differs", instruction.name);
  const bool needs_from = step.kind == CollectiveKind::kAllGather || step.kind == CollectiveKind::kAllToAll;
  const bool needs_to = step.kind == CollectiveKind::kAllToAll || step.kind == CollectiveKind::kReduceScatter;
  // A step into a partial layout may pad a dimension that was cut.
  const bool may_have_from = step.kind == CollectiveKind::kCollectivePermute || step.kind == CollectiveKind::kToPartial;
  if (needs_from != step.from_dim.has_value() && !may_have_from) {
    return fmt::format("{}: {} says {} from_dim", instruction.name, to_string(step.kind), needs_from ? "no" : "a");
  }
  if (needs_to && !step.to_dim) return fmt::format("{}: {} says no to_dim", instruction.name, to_string(step.kind));
  if (step.axes.empty()) return fmt::format("{}: no axes", instruction.name);
  return {};
}

/// The value in whose memory each value stands: itself, unless it is a view of another or a stored tensor's new value,
/// which is written over the old one once that is no longer read.
IdVector<ValueId, ValueId> memory_owners(const ParallelProgram& program) {
  IdVector<ValueId, std::size_t> last_reader(program.values.size(), 0);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ValueId input : program.instructions[i].inputs) last_reader[input] = i;
  }
  std::map<TensorId, ValueId> stored;
  for (const Binding& given : program.given) stored.emplace(given.tensor, given.value);
  std::map<ValueId, ValueId> old_values;  // by new value
  for (const Binding& update : program.updates) old_values.emplace(update.value, stored.at(update.tensor));
  IdVector<ValueId, ValueId> owner;
  for (const ValueId id : program.values.ids()) owner.push_back(id);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    for (const ValueId output : instruction.outputs) {
      const auto old = old_values.find(output);
      if (old != old_values.end() && last_reader[old->second] <= i) {
        owner[output] = old->second;
      } else if (instruction.kind == InstructionKind::kOperator &&
                 instruction.operation->type->work == WorkKind::kView) {
        owner[output] = owner[instruction.inputs[0]];
      }
    }
  }
  return owner;
}

}  // namespace

std::size_t ParallelProgram::num_in_micro_batch() const {
  if (micro_batches == 1) return 0;
  const auto end = std::find_if(instructions.begin(), instructions.end(),
                                [&](const Instruction& instruction) { return instruction.runs != micro_batches; });
  return static_cast<std::size_t>(end - instructions.begin());
}

Picoseconds ParallelProgram::computation() const {
  Picoseconds sum = 0;
  for (const Instruction& instruction : instructions) {
    sum += is_computation(instruction) ? instruction.time_of_step() : 0;
  }
  return sum;
}

Picoseconds ParallelProgram::communication() const {
  Picoseconds sum = 0;
  for (const Instruction& instruction : instructions) {
    sum += is_computation(instruction) ? 0 : instruction.time_of_step();
  }
  return sum;
}

std::string check_program(const ParallelProgram& program, const OperatorGraph& graph) {
  for (const ProgramValue& value : program.values) {
    const std::string fault = check_layout(value.layout, program.mesh, value.type.shape);
    if (!fault.empty()) return fmt::format("{}: {}", value.name, fault);
    if (value.local_shape != local_shape(value.layout, value.type.shape)) {
      return fmt::format("{}: local shape does not follow from its layout", value.name);
    }
    if (value.tensor && graph.tensor(*value.tensor).type != value.type) {
      return fmt::format("{}: type differs from the graph's", value.name);
    }
  }
  const std::size_t loop = program.num_in_micro_batch();
  IdVector<ValueId, char> is_sum(program.values.size(), 0);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.runs != (i < loop ? program.micro_batches : 1)) {
      return fmt::format("{}: runs {} times", instruction.name, instruction.runs);
    }
    for (const ValueId input : instruction.inputs) {
      if (i < loop && is_sum[input]) return fmt::format("{}: reads an unfinished sum", instruction.name);
    }
    if (is_accumulating(instruction)) is_sum[instruction.outputs[0]] = 1;
  }
  IdVector<ValueId, char> is_made(program.values.size(), 0);
  for (const Binding& given : program.given) is_made[given.value] = 1;
  for (const Instruction& instruction : program.instructions) {
    for (const ValueId input : instruction.inputs) {
      if (!is_made[input])
        return fmt::format("{}: reads {} before it is made", instruction.name, program.values[input].name);
    }
    for (const ValueId output : instruction.outputs) {
      if (is_made[output])
        return fmt::format("{}: makes {} a second time", instruction.name, program.values[output].name);
      is_made[output] = 1;
    }
    if (instruction.kind == InstructionKind::kCollective) {
      if (instruction.inputs.size() != 1 || instruction.outputs.size() != 1) {
        return fmt::format("{}: a collective has one input and one output", instruction.name);
      }
      const std::string fault =
          check_collective(instruction, program.values[instruction.inputs[0]], program.values[instruction.outputs[0]]);
      if (!fault.empty()) return fault;
    }
    if (instruction.kind == InstructionKind::kOperator) {
      const Operation& operation = *instruction.operation;
      const std::string fault = check_strategy(operation, instruction.strategy, program.mesh);
      if (!fault.empty()) return fmt::format("{}: {}", instruction.name, fault);
      for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
        if (program.values[instruction.inputs[i]].layout !=
            operand_layout(operation, instruction.strategy, program.mesh, i)) {
          return fmt::format("{}: operand {} comes in another layout than its strategy takes", instruction.name, i);
        }
      }
      for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
        if (program.values[instruction.outputs[i]].layout !=
            result_layout(operation, instruction.strategy, program.mesh, i)) {
          return fmt::format("{}: result {} has another layout than its strategy gives", instruction.name, i);
        }
      }
    }
  }
  for (const Binding& output : program.outputs) {
    if (!is_made[output.value]) return fmt::format("output {} is never made", program.values[output.value].name);
    if (!program.values[output.value].layout.partial.empty()) {
      return fmt::format("output {} is partial", program.values[output.value].name);
    }
  }
  std::map<TensorId, ValueId> given;
  for (const Binding& binding : program.given) given.emplace(binding.tensor, binding.value);
  for (const Binding& update : program.updates) {
    const auto found = given.find(update.tensor);
    if (found == given.end() || program.values[found->second].layout != program.values[update.value].layout) {
      return fmt::format("{} is updated in another layout than it is stored in", graph.tensor(update.tensor).name);
    }
  }
  return {};
}

MemoryProfile memory_profile(const ParallelProgram& program) {
  const std::size_t count = program.instructions.size();
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  const IdVector<ValueId, ValueId> owner = memory_owners(program);
  IdVector<ValueId, std::size_t> first(program.values.size(), kNever), last(program.values.size(), 0);
  const std::size_t end = count == 0 ? 0 : count - 1;
  for (std::size_t i = 0; i < count; ++i) {
    for (const ValueId input : program.instructions[i].inputs) last[owner[input]] = i;
    for (const ValueId output : program.instructions[i].outputs) {
      if (owner[output] == output) first[output] = is_accumulating(program.instructions[i]) ? 0 : i;
      last[owner[output]] = i;
    }
  }
  for (const Binding& given : program.given) {
    first[given.value] = 0;
    if (!given.is_input) last[given.value] = end;  // parameters and states stay; inputs go after their last reader
  }
  for (const Binding& output : program.outputs) last[owner[output.value]] = end;
  for (const Binding& update : program.updates) last[owner[update.value]] = end;

  MemoryProfile profile;
  std::vector<Bytes> change(count + 1, 0);
  for (const ValueId id : program.values.ids()) {
    if (first[id] == kNever) continue;
    change[first[id]] += program.values[id].bytes;
    if (last[id] + 1 <= count) change[last[id] + 1] -= program.values[id].bytes;
  }
  Bytes bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += change[i];
    profile.bytes.push_back(bytes);
    if (bytes > profile.peak) {
      profile.peak = bytes;
      profile.peak_instruction = i;
    }
  }
  for (const ValueId id : program.values.ids()) {
    if (first[id] != kNever && first[id] <= profile.peak_instruction && profile.peak_instruction <= last[id]) {
      profile.alive_at_peak.push_back({id, program.values[id].bytes});
    }
  }
  std::stable_sort(profile.alive_at_peak.begin(), profile.alive_at_peak.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return profile;
}

}  // namespace shardplan
