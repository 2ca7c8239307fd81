#include "program/program_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "layouts/uneven.h"
#include "program/instruction_facts.h"
#include "program/loop_order.h"
#include "program/startup_broadcasts.h"

namespace shardplan {
namespace {

/// Checks one collective: whether its kind leads from the layout of its input to that of its output.
std::string check_collective(const Instruction& instruction, const ProgramValue& input, const ProgramValue& output) {
  const CollectiveStep& step = instruction.step;
  if (step.before != input.layout || step.after != output.layout) {
    return fmt::format("{}: its layouts are not those of its values", instruction.name);
  }
  if (input.type != output.type) return fmt::format("{}: changes the tensor's type", instruction.name);
  if (step.local_shape != output.local_shape) return fmt::format("{}: local shape differs", instruction.name);
  const bool needs_from = step.kind == CollectiveKind::kAllGather || step.kind == CollectiveKind::kAllToAll;
  const bool needs_to = step.kind == CollectiveKind::kAllToAll || step.kind == CollectiveKind::kReduceScatter;
  // A step into a partial layout may pad a sharded dimension.
  const bool may_have_from = step.kind == CollectiveKind::kCollectivePermute || step.kind == CollectiveKind::kToPartial;
  if (needs_from != step.from_dim.has_value() && !may_have_from) {
    return fmt::format("{}: {} says {} from_dim", instruction.name, to_string(step.kind), needs_from ? "no" : "a");
  }
  if (needs_to && !step.to_dim) return fmt::format("{}: {} says no to_dim", instruction.name, to_string(step.kind));
  if (step.axes.empty()) return fmt::format("{}: no axes", instruction.name);
  return {};
}

/// Checks equal fusion ids: members are adjacent, alike, independent of each other, as many as the table of buckets
/// says, and together no larger than their buffer.
std::string check_buckets(const ParallelProgram& program) {
  std::set<ValueId> made;  // by the bucket's members so far
  std::size_t members = 0;
  std::int64_t elements = 0;
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.fusion == 0) continue;
    if (instruction.kind != InstructionKind::kCollective) {
      return fmt::format("{}: only collectives have a fusion id", instruction.name);
    }
    if (instruction.fusion > program.buckets.size()) return fmt::format("{}: no such bucket", instruction.name);
    const Instruction* previous = i == 0 ? nullptr : &program.instructions[i - 1];
    if (previous == nullptr || previous->fusion != instruction.fusion) {
      if (instruction.fusion <= last) return fmt::format("{}: its bucket was issued before", instruction.name);
      made.clear();
      members = 0;
      elements = 0;
    } else if (previous->step->kind != instruction.step->kind || previous->step->axes != instruction.step->axes ||
               previous->step->reduction != instruction.step->reduction || previous->runs != instruction.runs ||
               program.values[previous->inputs[0]].type.dtype != program.values[instruction.inputs[0]].type.dtype) {
      return fmt::format("{}: joined with {}, which is another collective", instruction.name, previous->name);
    }
    last = instruction.fusion;
    if (made.count(instruction.inputs[0]) > 0) {
      return fmt::format("{}: reads what its own bucket makes", instruction.name);
    }
    made.insert(instruction.outputs[0]);
    elements += std::max(num_elements(program.values[instruction.inputs[0]].local_shape),
                         num_elements(program.values[instruction.outputs[0]].local_shape));
    const Bucket& bucket = program.buckets[instruction.fusion - 1];
    const bool is_last = i + 1 == program.instructions.size() || program.instructions[i + 1].fusion != last;
    if (++members > bucket.members || (is_last && members < bucket.members)) {
      return fmt::format("{}: its bucket has {} members, not {}", instruction.name, members, bucket.members);
    }
    if (is_last && program.values[bucket.buffer].local_shape != Shape{elements}) {
      return fmt::format("{}: its bucket has another buffer than its members fill", instruction.name);
    }
  }
  return {};
}

/// Only sends cross from one worker to another, and a send does not change its value.
std::string check_workers(const ParallelProgram& program) {
  for (const ProgramValue& value : program.values) {
    if (value.worker < 0 || value.worker >= program.workers) {
      return fmt::format("{}: there is no worker {}", value.name, value.worker);
    }
  }
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind == InstructionKind::kSend) {
      if (instruction.inputs.size() != 1 || instruction.outputs.size() != 1) {
        return fmt::format("{}: a send has one input and one output", instruction.name);
      }
      const ProgramValue& from = program.values[instruction.inputs[0]];
      const ProgramValue& to = program.values[instruction.outputs[0]];
      if (from.worker == to.worker) return fmt::format("{}: sends to its own worker", instruction.name);
      if (from.type != to.type || from.layout != to.layout || from.tensor != to.tensor) {
        return fmt::format("{}: another value arrives than is sent", instruction.name);
      }
      if (from.in_registers) return fmt::format("{}: sends what is not in memory", instruction.name);
      continue;
    }
    const int worker = worker_of(program, instruction);
    for (const auto* values : {&instruction.inputs, &instruction.outputs}) {
      for (const ValueId id : *values) {
        if (program.values[id].worker != worker) {
          return fmt::format("{}: runs on worker {}, but {} is on worker {}", instruction.name, worker,
                             program.values[id].name, program.values[id].worker);
        }
      }
    }
  }
  return {};
}

}  // namespace

std::string check_program(const ParallelProgram& program, const OperatorGraph& graph) {
  for (const StartupBroadcast& broadcast : program.broadcasts) {
    if (broadcast.given >= program.given.size() || program.given[broadcast.given].is_input) {
      return "a broadcast before the first step of what is not stored";
    }
    const ProgramValue& value = program.values[program.given[broadcast.given].value];
    if (broadcast.axes.empty() || broadcast.axes != repeated_axes(value.layout, program.mesh)) {
      return fmt::format("{}: is broadcast over axes that do not repeat it", value.name);
    }
  }
  for (const ProgramValue& value : program.values) {
    const std::string fault = check_uneven_layout(value.layout, program.mesh, value.type.shape);
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
  if (std::string fault = check_workers(program); !fault.empty()) return fault;
  if (std::string fault = check_loop_order(program); !fault.empty()) return fault;
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
  if (std::string fault = check_buckets(program); !fault.empty()) return fault;
  for (const Binding& output : program.outputs) {
    if (!is_made[output.value]) return fmt::format("output {} is never made", program.values[output.value].name);
    if (!program.values[output.value].layout->partial.empty()) {
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
    if (program.values[found->second].worker != program.values[update.value].worker) {
      return fmt::format("{} is updated on another worker than it is stored on", graph.tensor(update.tensor).name);
    }
  }
  return {};
}

}  // namespace shardplan
