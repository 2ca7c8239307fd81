// A proof that cannot fail proves nothing.
//
// Every place of a program that could be wrong is made wrong in turn, and each fault must show in a tensor of the
// graph. Faults need neither a full run from the start nor one to the end: one correct executor steps through the
// program; at each place with faults, copies of it execute the instruction wrongly. A copy whose result equals the
// correct one on every device has a fault without effect (a kernel that does not use its position; two devices that
// hold the same shard); this is decided by comparison, not assumed. A copy whose result already differs from the
// reference is caught. The others continue, in threads, until a tensor of the graph differs or the step ends.
//
// Faults of one kind at repeated places (the layers of a model) form a class, by descriptions in which the indices of
// repeats are stars; the last member of a class represents it.

#include "simulator/proof/mutations.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/side_by_side.h"
#include "graph/folded_names.h"
#include "program/instruction_facts.h"

namespace shardplan {
namespace {

std::string place_of(const Instruction& instruction) {
  const Origin& origin = instruction.origin;
  std::string text = folded_name(origin.producer);
  if (!origin.consumer.empty()) text += " -> " + folded_name(origin.consumer);
  if (!origin.because.empty()) text += " (" + origin.because + ")";
  return text;
}

std::vector<FaultKind> faults_of(const CollectiveStep& step) {
  const bool is_sum = step.reduction == Reduction::kSum;
  switch (step.kind) {
    case CollectiveKind::kSlice:
      return {FaultKind::kSwapped, FaultKind::kRotated};
    case CollectiveKind::kToPartial:
      return {FaultKind::kRemoved};
    case CollectiveKind::kAllReduce:
      if (!is_sum) return {FaultKind::kRemoved, FaultKind::kRotated};
      return {FaultKind::kRemoved, FaultKind::kRotated, FaultKind::kDoubled};
    case CollectiveKind::kReduceScatter:
      if (!is_sum) return {FaultKind::kRemoved, FaultKind::kSwapped, FaultKind::kRotated};
      return {FaultKind::kRemoved, FaultKind::kSwapped, FaultKind::kRotated, FaultKind::kDoubled};
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kCollectivePermute:
      return {FaultKind::kRemoved, FaultKind::kSwapped, FaultKind::kRotated};
  }
  return {};
}

/// Whether a step gathers a dimension whose pieces end with padding.
bool trims(const CollectiveStep& step, const Shape& shape) {
  const bool gathers = step.kind == CollectiveKind::kAllGather || step.kind == CollectiveKind::kAllToAll;
  return gathers && shape[*step.from_dim] % step.before.dimensions[*step.from_dim].num_pieces() != 0;
}

bool is_sharded(const Strategy& strategy) {
  return std::any_of(strategy.factors.begin(), strategy.factors.end(),
                     [](const auto& axes) { return num_pieces(axes) > 1; });
}

/// A kernel with sharded windows relies on the halo of its own position; at another one it would read out of bounds.
bool has_sharded_window(const Instruction& instruction) {
  for (const TensorWalk& walk : instruction.operation->rule.operands) {
    for (const DimensionWalk& dimension : walk) {
      if (dimension.window && num_pieces(instruction.strategy->factors[dimension.window->output]) > 1) return true;
    }
  }
  return false;
}

bool is_sharded(const TensorLayout& layout) {
  return std::any_of(layout.dimensions.begin(), layout.dimensions.end(),
                     [](const DimensionLayout& dimension) { return dimension.is_sharded(); });
}

/// Collects mutations, keeping the last of each class.
class Classes {
 public:
  void add(const Fault& fault, const std::string& description) {
    Mutation& mutation = by_description_[description];
    const std::size_t places = mutation.description.empty() ? 1 : mutation.num_places + 1;
    mutation = {fault, description, places};
  }
  std::vector<Mutation> list() const {
    std::vector<Mutation> mutations;
    for (const auto& [description, mutation] : by_description_) mutations.push_back(mutation);
    std::stable_sort(mutations.begin(), mutations.end(), [](const Mutation& a, const Mutation& b) {
      return a.fault.instruction < b.fault.instruction;  // given tensors and broadcasts first
    });
    return mutations;
  }

 private:
  std::map<std::string, Mutation> by_description_;
};

/// The step on which all mutations are tried.
class Trial {
 public:
  Trial(const ParallelProgram& program, const OperatorGraph& graph, const ValidationOptions& options)
      : program_(program), graph_(graph), options_(options), held_(held_tensors(program, graph)) {
    stored_ = [this](TensorId id, std::uint64_t m) { return draw_tensor(graph_, id, options_.seed, m); };
    reference_ = ReferenceSteps(graph, options.seed, options.stop).next(false);
  }

  const StoredValues& stored() const { return stored_; }

  /// True if both executors hold the same in `id`, within the tolerance; for partial values, if the summands add up to
  /// the same.
  bool hold_the_same(const Executor& a, const Executor& b, ValueId id) const {
    const ProgramValue& value = program_.values[id];
    const DeviceBuffers left = completed(a.value(id), value, program_.mesh);
    const DeviceBuffers right = completed(b.value(id), value, program_.mesh);
    double scale = 0;
    for (const TensorValues& buffer : left) scale = std::max(scale, scale_of(buffer));
    const Tolerance tolerance = value.tensor ? float64_tolerance(options_.float64_tolerance, reference_, *value.tensor)
                                             : Tolerance{options_.float64_tolerance, 0};
    AlikeDevices alike;
    for (std::size_t device = 0; device < left.size(); ++device) {
      const AlikeDevices::Key pair = {AlikeDevices::memory(left[device]), AlikeDevices::memory(right[device])};
      if (pair[0] == pair[1] || alike.first_with(pair, device) != device) continue;
      for (std::size_t i = 0; i < left[device].size(); ++i) {
        const double x = left[device][i];
        const double y = right[device][i];
        if (!(distance(y, x) <= tolerance.allowed(scale, x))) return false;
      }
    }
    return true;
  }

  bool is_blind(const Executor& executor, ValueId id) const {
    double low = HUGE_VAL;
    double high = -HUGE_VAL;
    for (const TensorValues& buffer : executor.value(id).data) {
      for (const double value : buffer) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    return low == high;
  }

  /// Runs the executor on from its position and returns the name of the first tensor that is wrong.
  std::string run_until_caught(Executor executor) const {
    while (!executor.is_done()) {
      const Instruction& instruction = program_.instructions[executor.next_instruction()];
      const std::size_t micro_batch = executor.micro_batch();
      executor.run_next();
      for (const ValueId id : instruction.outputs) {
        if (is_wrong(executor, id, micro_batch)) return graph_.tensor(*held_[id]).name;
      }
    }
    return {};
  }
  bool is_wrong(const Executor& executor, ValueId id, std::size_t micro_batch) const {
    if (!held_[id]) return false;
    const TensorId tensor = *held_[id];
    return !compare(executor.value(id), program_.values[id], program_.mesh, reference_.exact.at(tensor, micro_batch),
                    float64_tolerance(options_.float64_tolerance, reference_, tensor))
                .is_equal();
  }
  const IdVector<ValueId, std::optional<TensorId>>& held() const { return held_; }

 private:
  const ParallelProgram& program_;
  const OperatorGraph& graph_;
  const ValidationOptions& options_;
  IdVector<ValueId, std::optional<TensorId>> held_;
  StoredValues stored_;
  MeasuredReference reference_;
};

/// A faulty executor just after its fault, still to be run to the end.
struct Pending {
  std::size_t mutation;
  Executor executor;
};

}  // namespace

std::vector<Mutation> list_mutations(const ParallelProgram& program, const OperatorGraph& graph) {
  Classes classes;
  for (std::size_t i = 0; i < program.given.size(); ++i) {
    if (!is_sharded(program.values[program.given[i].value].layout)) continue;
    const std::string name = folded_name(graph.tensor(program.given[i].tensor).name);
    classes.add({.kind = FaultKind::kSwapped, .given = i}, fmt::format("two pieces of {} swapped", name));
  }
  for (std::size_t i = 0; i < program.broadcasts.size(); ++i) {
    const StartupBroadcast& broadcast = program.broadcasts[i];
    const std::string name = folded_name(graph.tensor(program.given[broadcast.given].tensor).name);
    const std::string axes = program.mesh.to_string(broadcast.axes);
    classes.add({.kind = FaultKind::kRemoved, .broadcast = i}, fmt::format("broadcast {} of {} removed", axes, name));
    classes.add({.kind = FaultKind::kSwapped, .broadcast = i},
                fmt::format("broadcast {} of {} from the second device", axes, name));
  }
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.kind == InstructionKind::kCollective) {
      const CollectiveStep& step = instruction.step;
      std::vector<FaultKind> faults = faults_of(step);
      if (trims(step, program.values[instruction.inputs.front()].type.shape)) faults.push_back(FaultKind::kUntrimmed);
      for (const FaultKind kind : faults) {
        // Rotating the ranks of a sum over all devices only changes the order of the summands.
        if (kind == FaultKind::kRotated && step.kind == CollectiveKind::kAllReduce &&
            num_pieces(step.axes) == program.mesh.num_devices()) {
          continue;
        }
        classes.add({.kind = kind, .instruction = i},
                    fmt::format("{} {} of {} {}", to_string(step.kind), program.mesh.to_string(step.axes),
                                place_of(instruction), to_string(kind)));
      }
    } else if (instruction.kind == InstructionKind::kSend) {
      const ProgramValue& sent = program.values[instruction.inputs.front()];
      const std::string what =
          fmt::format("send of {} to worker {}", folded_name(sent.name), result_worker(program, instruction));
      classes.add({.kind = FaultKind::kRemoved, .instruction = i}, what + " removed");
      if (is_sharded(sent.layout)) {
        classes.add({.kind = FaultKind::kRotated, .instruction = i}, what + " rotated");
      }
    } else if (instruction.kind == InstructionKind::kHalo) {
      classes.add({.kind = FaultKind::kRemoved, .instruction = i},
                  fmt::format("halo of {} removed", place_of(instruction)));
    } else if (instruction.kind == InstructionKind::kOperator && is_sharded(instruction.strategy) &&
               !has_sharded_window(instruction)) {
      classes.add({.kind = FaultKind::kShifted, .instruction = i},
                  fmt::format("boxes of {} shifted", folded_name(instruction.name)));
      if (is_uneven(*instruction.operation, instruction.strategy)) {
        classes.add({.kind = FaultKind::kUntrimmed, .instruction = i},
                    fmt::format("boxes of {} not trimmed", folded_name(instruction.name)));
      }
    }
  }
  return classes.list();
}

std::vector<MutationResult> test_mutations(const ParallelProgram& program, const OperatorGraph& graph,
                                           const ValidationOptions& options) {
  SHARDPLAN_CHECK(operators_without_kernel(graph).empty());
  if (!program.loop_order.turns.empty()) {  // faults are tried in the order of the sequence
    ParallelProgram in_sequence = program;
    in_sequence.loop_order = {};
    return test_mutations(in_sequence, graph, options);
  }
  const Trial trial(program, graph, options);
  std::vector<MutationResult> results;
  for (Mutation& mutation : list_mutations(program, graph)) results.push_back({.mutation = std::move(mutation)});

  // One correct run; at each place with faults, copies of its executor branch off.
  const auto right_executor = [&] { return Executor(program, graph, {.seed = options.seed, .stop = options.stop}); };
  std::vector<Pending> pending;
  Executor right = right_executor();
  right.start(0, trial.stored());
  std::size_t next = 0;
  for (; next < results.size() && !results[next].mutation.fault.instruction; ++next) {
    MutationResult& result = results[next];
    const Fault& fault = result.mutation.fault;
    const ValueId id = program.given[fault.given ? *fault.given : program.broadcasts[*fault.broadcast].given].value;
    Executor wrong = right_executor();
    wrong.start(0, trial.stored(), &result.mutation.fault);
    if (trial.hold_the_same(right, wrong, id)) {
      result.outcome = MutationOutcome::kWithoutEffect;
      result.is_blind = trial.is_blind(right, id);
    } else if (trial.is_wrong(wrong, id, 0)) {
      result.outcome = MutationOutcome::kCaught;
      result.caught_in = graph.tensor(*trial.held()[id]).name;
    } else {
      pending.push_back({next, std::move(wrong)});
    }
  }
  while (next < results.size()) {
    const std::size_t place = *results[next].mutation.fault.instruction;
    while (right.next_instruction() < place) right.run_next();
    const Executor before = right;
    right.run_next();
    for (; next < results.size() && results[next].mutation.fault.instruction == place; ++next) {
      MutationResult& result = results[next];
      Executor wrong = before;
      wrong.run_next(&result.mutation.fault);
      bool has_effect = false;
      for (const ValueId id : program.instructions[place].outputs) {
        has_effect = has_effect || !trial.hold_the_same(right, wrong, id);
        if (result.caught_in.empty() && trial.is_wrong(wrong, id, before.micro_batch())) {
          result.caught_in = graph.tensor(*trial.held()[id]).name;
        }
      }
      if (!has_effect) {
        result.caught_in.clear();
        result.outcome = MutationOutcome::kWithoutEffect;
        result.is_blind = trial.is_blind(right, program.instructions[place].outputs.front());
      } else if (!result.caught_in.empty()) {
        result.outcome = MutationOutcome::kCaught;
      } else {
        pending.push_back({next, std::move(wrong)});
      }
    }
  }

  // Values between phases hold no tensor of the graph, and other values may be equally good: any number in place of the
  // maximum that a softmax subtracts. Such a fault is judged by the operator's results.
  const auto holds_tensor = [&](const MutationResult& result) {
    if (!result.mutation.fault.instruction) return true;
    const std::vector<ValueId>& outputs = program.instructions[*result.mutation.fault.instruction].outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return trial.held()[id].has_value(); });
  };
  side_by_side(static_cast<std::size_t>(options.threads), pending.size(), [&](std::size_t, std::size_t i) {
    MutationResult& result = results[pending[i].mutation];
    result.caught_in = trial.run_until_caught(std::move(pending[i].executor));
    result.outcome = !result.caught_in.empty() ? MutationOutcome::kCaught
                     : !holds_tensor(result)   ? MutationOutcome::kWithoutEffect
                                               : MutationOutcome::kUncaught;
  });
  return results;
}

}  // namespace shardplan
