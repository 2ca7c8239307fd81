#include "report/plan_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/folded_names.h"

namespace shardplan {

std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::optional<double> ratio(const StepTime& time) {
  if (time.repeated > 0) return std::nullopt;
  if (time.communication == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(time.computation) / static_cast<double>(time.communication);
}

std::string ratio_text(const StepTime& time) {
  const std::optional<double> value = ratio(time);
  if (!value) return "-";
  return *value == std::numeric_limits<double>::infinity() ? "inf" : three_digits(*value);
}

std::string gap_text(const std::optional<double>& gap) { return gap ? fmt::format("{:.1f}", 100 * *gap) : "-"; }

bool is_communication(const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kHalo) return true;
  return instruction.kind == InstructionKind::kCollective && instruction.step.kind != CollectiveKind::kSlice &&
         instruction.step.kind != CollectiveKind::kToPartial;
}

Bytes group_bytes(const ParallelProgram& program, const Instruction& instruction) {
  const Bytes in = instruction.inputs.empty() ? 0 : program.values[instruction.inputs[0]].bytes;
  const Bytes out = instruction.outputs.empty() ? 0 : program.values[instruction.outputs[0]].bytes;
  if (instruction.kind == InstructionKind::kHalo) {
    Bytes received = 0;
    const Shape& shape = program.values[instruction.inputs[0]].local_shape;
    for (const Halo& halo : instruction.halo) {
      if (shape[halo.dimension] > 0) received += in / shape[halo.dimension] * (halo.before + halo.after);
    }
    return received;
  }
  switch (instruction.step.kind) {
    case CollectiveKind::kAllGather:
      return out;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kCollectivePermute:
      return in * num_pieces(instruction.step.axes);
    default:
      return in;
  }
}

PassTimes pass_times(const ParallelProgram& program, Pass pass) {
  PassTimes times;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.pass != pass) continue;
    (is_communication(instruction) ? times.communication : times.computation) += instruction.time_of_step();
  }
  return times;
}

std::string training_words(const OperatorGraph& graph) {
  if (!graph.is_training()) return {};
  return graph.micro_batches() == 1 ? "training, "
                                    : fmt::format("training in {} micro-batches, ", graph.micro_batches());
}

std::vector<Picoseconds> start_times(const ParallelProgram& program) {
  const std::size_t loop = program.num_in_micro_batch();
  std::vector<Picoseconds> starts{0};
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    starts.push_back(starts.back() + program.instructions[i].time);
    if (i + 1 == loop) starts.back() *= program.micro_batches;
  }
  return starts;
}

std::optional<TensorId> stored_tensor(const OperatorGraph& graph, const ParallelProgram& program,
                                      const Instruction& instruction) {
  const auto is_stored = [&](TensorId tensor) {
    return graph.tensor(tensor).kind == TensorKind::kParameter || graph.tensor(tensor).kind == TensorKind::kState;
  };
  for (const std::vector<ValueId>* values : {&instruction.outputs, &instruction.inputs}) {
    for (const ValueId value : *values) {
      const std::optional<TensorId> tensor = program.values[value].tensor;
      if (!tensor) continue;
      if (is_stored(*tensor)) return tensor;
      if (const auto updated = graph.tensor(*tensor).updates) return updated;
      if (const auto parameter = graph.tensor(*tensor).gradient_of) return parameter;
    }
  }
  return std::nullopt;
}

bool is_border(const OperatorGraph& graph, OperatorId op) { return !graph.operators()[op].border_of.empty(); }

std::size_t num_operators(const OperatorGraph& graph) {
  std::size_t count = 0;
  for (const OperatorId op : graph.operators().ids()) count += is_border(graph, op) ? 0 : 1;
  return count;
}

std::string_view to_string(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kBackward:
      return "backward";
    case Pass::kUpdate:
      return "update";
  }
  return {};
}

}  // namespace shardplan
