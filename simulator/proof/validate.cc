// Finds out whether a program is right and, if not, where it first goes wrong.
//
// Each step first runs on one device (ReferenceSteps), which also measures how precise each tensor's numbers are. Then
// it runs on the mesh in float64, with every value compared that holds a tensor of the graph, and in float32, with only
// the values compared that float32 can decide. Comparing costs more than computing, so a run only notes whether all is
// equal; after a difference the step runs again from its start with every value compared in program order. The report
// describes the first wrong value with its instruction, whose inputs must all have been right.

#include "simulator/proof/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "program/instruction_facts.h"

namespace shardplan {
namespace {

/// By value: the tensor to compare with, if any.
using Watched = IdVector<ValueId, std::optional<TensorId>>;

bool is_constant(const TensorValues& values) {
  return values.size() > 1 &&
         std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

double largest_of(const TensorValues& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

bool has_nan(const TensorValues& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

/// The gradients that float32 is judged by: made in the backward pass and read by an update.
std::set<TensorId> gradients(const OperatorGraph& graph) {
  std::set<TensorId> found;
  for (const GraphOperator& op : graph.operators()) {
    if (op.pass != Pass::kUpdate) continue;
    for (const TensorId operand : op.operands) {
      const GraphTensor& tensor = graph.tensor(operand);
      if (tensor.producer && graph.operators()[*tensor.producer].pass == Pass::kBackward) found.insert(operand);
    }
  }
  return found;
}

bool is_made_by_update(const OperatorGraph& graph, TensorId id) {
  const GraphTensor& tensor = graph.tensor(id);
  return tensor.producer && graph.operators()[*tensor.producer].pass == Pass::kUpdate;
}

/// By value: for outputs and updates, the tensor that it must equal at the end.
Watched delivered_tensors(const ParallelProgram& program, const OperatorGraph& graph) {
  std::map<TensorId, TensorId> new_value;  // of a parameter or state
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).updates) new_value[*graph.tensor(id).updates] = id;
  }
  Watched delivered(program.values.size());
  for (const Binding& binding : program.outputs) delivered[binding.value] = binding.tensor;
  for (const Binding& binding : program.updates) delivered[binding.value] = new_value.at(binding.tensor);
  return delivered;
}

Watched float32_watched(const ParallelProgram& program, const OperatorGraph& graph) {
  Watched watched = delivered_tensors(program, graph);
  const std::set<TensorId> wanted = gradients(graph);
  for (const ValueId id : program.values.ids()) {
    if (watched[id] && is_made_by_update(graph, *watched[id])) watched[id] = std::nullopt;
    const std::optional<TensorId>& tensor = program.values[id].tensor;
    if (tensor && wanted.count(*tensor) > 0) watched[id] = tensor;
  }
  return watched;
}

/// By tensor: whether it, or something it is computed from, has numbers beyond float32, which become infinity, with all
/// consequences.
IdVector<TensorId, char> beyond_float32(const OperatorGraph& graph, const ReferenceStep& exact) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const auto is_beyond = [&](const TensorValues& values) {
    return std::any_of(values.begin(), values.end(),
                       [](double value) { return std::abs(value) > kLargest && std::isfinite(value); });
  };
  IdVector<TensorId, char> result(graph.tensors().size(), 0);
  for (const TensorId id : graph.tensors().ids()) {
    for (std::size_t m = 0; m <= exact.earlier.size(); ++m) result[id] = result[id] || is_beyond(exact.at(id, m));
  }
  for (const GraphOperator& op : graph.operators()) {
    const bool follows =
        std::any_of(op.operands.begin(), op.operands.end(), [&](TensorId operand) { return result[operand] != 0; });
    for (const TensorId id : op.results) result[id] = result[id] || follows;
  }
  return result;
}

/// Of a tensor's largest value: as large a tolerance in float32 is only a guess.
constexpr double kUnsteady = 0.01;
constexpr const char* kUnsteadyReason = "rounding to float32 changes it too much, compared in float64 only";

/// One run of one step compared with its reference.
struct Run {
  const ParallelProgram& program;
  const OperatorGraph& graph;
  const MeasuredReference& reference;
  Precision precision;
  double relative;
  int step;  // from 1
  const IdVector<TensorId, char>& beyond32;

  const TensorValues& expected(TensorId tensor, std::size_t micro_batch) const {
    return reference.exact.at(tensor, micro_batch);
  }
  Tolerance tolerance(TensorId tensor) const {
    if (precision == Precision::kFloat64) return float64_tolerance(relative, reference, tensor);
    if (beyond32[tensor]) return {relative, std::numeric_limits<double>::infinity()};
    const Tolerance of_steps = float64_tolerance(0, reference, tensor);
    const Movement& moved = reference.moved32[tensor];
    return {relative, 2 * moved.absolute + of_steps.absolute, 2 * moved.of_large + of_steps.of_large};
  }
  /// Whether rounding to float32 changes the tensor so much that of one such change no other can be foreseen: it is
  /// then compared in float64 only.
  bool is_unsteady(TensorId tensor) const {
    if (precision == Precision::kFloat64) return false;
    const Tolerance allowed = tolerance(tensor);
    return allowed.absolute > kUnsteady * scale_of(reference.exact.tensors[tensor]) || allowed.of_large > kUnsteady;
  }
};

/// Runs to the end and compares the watched values; returns true if all are equal. Those that differ but are unsteady
/// are added to `unproven`.
bool run_and_compare(const Run& run, Executor& executor, const Watched& watched, PrecisionResult& result,
                     std::vector<Unproven>& unproven) {
  bool is_equal = true;
  const auto judge = [&](ValueId id, std::size_t micro_batch) {
    if (!watched[id]) return;
    const TensorId tensor = *watched[id];
    const Tolerance tolerance = run.tolerance(tensor);
    const Comparison comparison = compare(executor.value(id), run.program.values[id], run.program.mesh,
                                          run.expected(tensor, micro_batch), tolerance);
    if (!comparison.is_equal() && run.is_unsteady(tensor)) {
      const std::string& name = run.graph.tensor(tensor).name;
      const auto has_name = [&](const Unproven& known) { return known.tensor == name; };
      if (std::ranges::none_of(unproven, has_name)) unproven.push_back({name, kUnsteadyReason});
      return;
    }
    if (comparison.worst * tolerance.relative > result.largest) {
      result.largest = comparison.worst * tolerance.relative;
      result.largest_in = run.graph.tensor(tensor).name;
    }
    is_equal = is_equal && comparison.is_equal();
  };
  for (const Binding& binding : run.program.given) judge(binding.value, 0);
  while (!executor.is_done()) {
    const Instruction& instruction = run.program.instructions[executor.next_instruction()];
    const std::size_t micro_batch = executor.micro_batch();
    executor.run_next();
    for (const ValueId id : instruction.outputs) judge(id, micro_batch);
  }
  return is_equal;
}

std::string coordinates(const DeviceMesh& mesh, std::int64_t point) {
  std::string text;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", mesh.axes()[axis].name,
                        mesh.coordinate(point, mesh.whole(axis)));
  }
  return text;
}

FirstWrong describe_wrong(const Run& run, const Executor& executor, ValueId id, TensorId tensor,
                          const Instruction* instruction, const Comparison& comparison, std::size_t micro_batch) {
  const ProgramValue& value = run.program.values[id];
  const DeviceMesh& mesh = run.program.mesh;
  const Tolerance tolerance = run.tolerance(tensor);
  FirstWrong wrong;
  wrong.precision = run.precision;
  wrong.step = run.step;
  wrong.tensor = run.graph.tensor(tensor).name;
  wrong.rank = mesh.devices().empty() ? comparison.point : mesh.devices()[static_cast<std::size_t>(comparison.point)];
  wrong.rank += value.worker * mesh.num_devices();
  wrong.coordinates = coordinates(mesh, comparison.point);
  wrong.local_shape = value.local_shape;
  wrong.global_shape = value.type.shape;
  wrong.comparison = comparison;
  wrong.allowed = tolerance.allowed(comparison.scale, comparison.should_be);
  wrong.looks_like = looks_like(executor.value(id), value, mesh, run.expected(tensor, micro_batch), tolerance);
  if (instruction == nullptr) return wrong;
  wrong.instruction = instruction->name;
  wrong.is_inserted =
      instruction->kind != InstructionKind::kOperator && instruction->kind != InstructionKind::kConstant;
  // Phases read internal values; the inputs from outside are the operands of the whole operator.
  if (instruction->is_phase && instruction->op) {
    for (const TensorId operand : run.graph.operators()[*instruction->op].operands) {
      wrong.right_inputs.push_back(run.graph.tensor(operand).name);
    }
    return wrong;
  }
  for (const ValueId input : instruction->inputs) {
    const ProgramValue& from = run.program.values[input];
    wrong.right_inputs.push_back(from.tensor ? run.graph.tensor(*from.tensor).name : from.name);
  }
  return wrong;
}

/// The first wrong value of a step that went wrong; `watched` is used if no earlier value holds a tensor.
std::optional<FirstWrong> find_first_wrong(const Run& run, Executor executor, const Watched& watched) {
  const auto check = [&](ValueId id, const Instruction* instruction,
                         std::size_t micro_batch) -> std::optional<FirstWrong> {
    const std::optional<TensorId> tensor =
        watched[id] ? watched[id] : std::optional<TensorId>(run.program.values[id].tensor);
    if (!tensor || run.expected(*tensor, micro_batch).empty()) return std::nullopt;
    const Comparison comparison = compare(executor.value(id), run.program.values[id], run.program.mesh,
                                          run.expected(*tensor, micro_batch), run.tolerance(*tensor));
    if (comparison.is_equal() || run.is_unsteady(*tensor)) return std::nullopt;
    return describe_wrong(run, executor, id, *tensor, instruction, comparison, micro_batch);
  };
  for (const Binding& binding : run.program.given) {
    if (auto wrong = check(binding.value, nullptr, 0)) return wrong;
  }
  while (!executor.is_done()) {
    const Instruction& instruction = run.program.instructions[executor.next_instruction()];
    const std::size_t micro_batch = executor.micro_batch();
    executor.run_next();
    for (const ValueId id : instruction.outputs) {
      if (auto wrong = check(id, &instruction, micro_batch)) return wrong;
    }
  }
  return std::nullopt;
}

void count_compared(const OperatorGraph& graph, const Watched& watched, PrecisionResult& result) {
  const std::set<TensorId> wanted = gradients(graph);
  std::set<TensorId> seen;
  for (const std::optional<TensorId>& tensor : watched) {
    if (!tensor || !seen.insert(*tensor).second) continue;
    const std::optional<TensorId>& updates = graph.tensor(*tensor).updates;
    if (graph.loss() == *tensor) {
      result.has_loss = true;
    } else if (updates) {
      ++(graph.tensor(*updates).kind == TensorKind::kParameter ? result.parameters : result.states);
    } else {
      const bool is_gradient = result.precision == Precision::kFloat32 && wanted.count(*tensor) > 0;
      const bool is_between = !graph.tensor(*tensor).is_output;
      ++(is_gradient ? result.gradients : is_between ? result.between : result.outputs);
    }
  }
}

/// Finds tensors of the exact run that would look right in spite of any fault.
void find_unproven(const OperatorGraph& graph, const Watched& watched, const MeasuredReference& reference,
                   double relative, const IdVector<TensorId, char>& beyond32, std::vector<Unproven>& unproven) {
  std::set<TensorId> seen;
  for (const std::optional<TensorId>& tensor : watched) {
    if (!tensor || !seen.insert(*tensor).second) continue;
    const TensorValues& values = reference.exact.tensors[*tensor];
    // Numbers that stand for infinity do not count in the scale, and are compared relative to themselves.
    const bool has_large = largest_of(values) >= kStandsForInfinity;
    std::string reason;
    if (has_nan(values)) {
      reason = "not a number on one device as well";
    } else if (largest_of(values) == 0) {
      reason = "all zero";
    } else if (!has_large && scale_of(values) <= float64_tolerance(relative, reference, *tensor).absolute) {
      reason = "zero but for rounding";
    } else if (is_constant(values)) {
      reason = "constant";
    } else if (beyond32[*tensor]) {
      reason = "beyond the numbers of float32, compared in float64 only";
    }
    if (!reason.empty()) unproven.push_back({graph.tensor(*tensor).name, reason});
  }
}

Watched only(const ParallelProgram& program, const OperatorGraph& graph, const std::string& name) {
  const std::optional<TensorId> tensor = graph.find_tensor(name);
  if (!tensor) {
    std::vector<std::string> names;
    for (const GraphTensor& candidate : graph.tensors()) names.push_back(candidate.name);
    const std::string nearest = nearest_name(name, names);
    throw InputError(SourcePlace{}, "no tensor '{}'{}", name,
                     nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest));
  }
  Watched watched(program.values.size());
  for (const ValueId id : program.values.ids()) {
    if (program.values[id].tensor == tensor) watched[id] = tensor;
  }
  return watched;
}

}  // namespace

Tolerance float64_tolerance(double relative, const MeasuredReference& reference, TensorId tensor) {
  // If a tensor is only rounding error, its change in one disturbed run is one sample of how far two summation orders
  // may differ. Eight times that is still tiny compared with the effect of a fault on any other tensor.
  const Movement& moved = reference.moved64[tensor];
  return {relative, 8 * moved.absolute, 8 * moved.of_large};
}

IdVector<ValueId, std::optional<TensorId>> held_tensors(const ParallelProgram& program, const OperatorGraph& graph) {
  IdVector<ValueId, std::optional<TensorId>> held = delivered_tensors(program, graph);
  for (const ValueId id : program.values.ids()) {
    if (!held[id]) held[id] = program.values[id].tensor;
  }
  return held;
}

ValidationResult validate(const ParallelProgram& program, const OperatorGraph& graph,
                          const ValidationOptions& options) {
  ValidationResult result;
  result.num_devices = program.workers * program.mesh.num_devices();
  result.without_kernel = operators_without_kernel(graph);
  if (!result.without_kernel.empty()) return result;
  result.num_collectives = static_cast<std::size_t>(
      std::count_if(program.instructions.begin(), program.instructions.end(),
                    [](const Instruction& instruction) { return is_communication(instruction); }));
  result.num_sends = static_cast<std::size_t>(
      std::count_if(program.instructions.begin(), program.instructions.end(),
                    [](const Instruction& instruction) { return instruction.kind == InstructionKind::kSend; }));
  result.num_collectives -= result.num_sends;

  const bool asks_one = !options.until.empty();
  const Watched watched64 = asks_one ? only(program, graph, options.until) : held_tensors(program, graph);
  const Watched judged_in_the_end = asks_one ? watched64 : delivered_tensors(program, graph);
  const Watched watched32 = asks_one ? watched64 : float32_watched(program, graph);
  result.precisions.push_back({.precision = Precision::kFloat64, .allowed = options.float64_tolerance});
  count_compared(graph, watched64, result.precisions.back());
  if (options.float32) {
    result.precisions.push_back({.precision = Precision::kFloat32, .allowed = options.float32_tolerance});
    count_compared(graph, watched32, result.precisions.back());
  }

  ReferenceSteps references(graph, options.seed, options.stop);
  const auto announce = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  const auto executor_in = [&](Precision precision) {
    return Executor(program, graph,
                    {.precision = precision, .seed = options.seed, .threads = options.threads, .stop = options.stop});
  };
  Executor exact = executor_in(Precision::kFloat64);
  const int steps = program.updates.empty() ? 1 : options.steps;
  for (int step = 1; step <= steps; ++step) {
    const auto number = static_cast<std::uint64_t>(step - 1);
    announce(fmt::format("step {} of {}: one device", step, steps));
    const MeasuredReference reference = references.next(options.float32);
    const std::uint64_t first = number * static_cast<std::uint64_t>(program.micro_batches);
    const StoredValues given = [&](TensorId id, std::uint64_t micro_batch) {
      return reference.exact.at(id, static_cast<std::size_t>(micro_batch - first));
    };
    const IdVector<TensorId, char> beyond32 = beyond_float32(graph, reference.exact);
    if (step == 1) {
      find_unproven(graph, judged_in_the_end, reference, options.float64_tolerance, beyond32, result.unproven);
    }
    for (PrecisionResult& judged : result.precisions) {
      const bool is_exact = judged.precision == Precision::kFloat64;
      const Run run{program, graph, reference, judged.precision, judged.allowed, step, beyond32};
      const Watched& watched = is_exact ? watched64 : watched32;
      announce(fmt::format("step {} of {}: {} device{} in {}", step, steps, result.num_devices,
                           result.num_devices == 1 ? "" : "s", is_exact ? "float64" : "float32"));
      Executor rounded = executor_in(judged.precision);
      Executor& executor = is_exact ? exact : rounded;
      if (is_exact && step > 1) {
        executor.start_next(number, given);
      } else {
        executor.start(number, given);
      }
      const Executor at_start = executor;
      judged.steps = step;
      judged.is_equal = run_and_compare(run, executor, watched, judged, result.unproven);
      if (!judged.is_equal) {
        result.first_wrong = find_first_wrong(run, at_start, watched);
        return result;
      }
    }
  }
  return result;
}

}  // namespace shardplan
