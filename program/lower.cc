#include "program/lower.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "costmodel/operator_steps.h"
#include "program/collective_matmul.h"
#include "program/instruction_facts.h"

// One pass through the operators in graph order. Before operator k come the versions made at time k (a layout
// delivered to several readers, kept for the backward pass, or stored; a gradient in the layout in which it waits for
// its update), then redistributions of its operands, then its own steps. Steps of equal operators with equal
// strategies are planned once and shared by all copies. Nothing is decided here, which is why the times add up to
// `evaluate`.

namespace shardplan {
namespace {

class Lowering {
 public:
  Lowering(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
           const KernelFusion& fusion, RedistributionPlanner& redistributions)
      : graph_(graph), versions_(versions), costs_(costs), redistributions_(redistributions), fusion_(fusion) {
    made_at_.resize(versions.num_times + 1);
    taken_at_.resize(versions.num_times + 1);
    for (const VersionId version : versions.all.ids()) {
      const TensorVersion& info = versions.all[version];
      const bool is_there = info.kind == TensorVersion::Kind::kStored || info.kind == TensorVersion::Kind::kProduced;
      if (!is_there) made_at_[info.begin].push_back(version);
      if (info.is_taken_early) taken_at_[info.end].push_back(version);
    }
    operations_.resize(graph.operations().size());
  }

  ParallelProgram run(const Decisions& decisions) {
    decisions_ = &decisions;
    program_ = {};
    program_.mesh = costs_.mesh();
    program_.micro_batches = graph_.micro_batches();
    program_.speeds_together = costs_.speeds_together();
    // More than most programs have, to avoid reallocation; unused capacity takes no memory.
    program_.instructions.reserve(2 * graph_.operators().size());
    program_.values.reserve(2 * graph_.tensors().size());
    version_values_ = IdVector<VersionId, OptionalIndex<ValueId>>(versions_.all.size());
    for (const VersionId version : versions_.all.ids()) {
      const TensorVersion& info = versions_.all[version];
      if (info.kind == TensorVersion::Kind::kStored) {
        version_values_[version] = add_value(graph_.tensor(info.tensor).name, info.tensor,
                                             graph_.tensor(info.tensor).type, decisions_->versions[version]);
        program_.given.push_back(
            {info.tensor, *version_values_[version], graph_.tensor(info.tensor).kind == TensorKind::kInput});
      }
    }
    for (const OperatorId op : graph_.operators().ids()) {
      make_versions(op.value());
      take_early(op.value());
      lower_operator(op);
    }
    make_versions(graph_.operators().size());
    if (costs_.has_collective_matmul()) cut_in_pieces(program_, graph_);
    return std::move(program_);
  }

 private:
  /// The steps of equal operators with one strategy: all copies of a layer.
  struct SharedSteps {
    Strategy strategy;
    SharedValue<KernelTraffic> traffic;
    std::vector<TensorLayout> operands;  // as its steps take them
    OperatorSteps steps;
    std::vector<SharedValue<Strategy>> strategies;         // of the steps, as their instructions have them
    std::vector<SharedValue<CollectiveStep>> collectives;  // likewise
  };
  struct PlannedOperation {
    std::shared_ptr<const Operation> operation;
    std::vector<std::unique_ptr<const SharedSteps>> plans;
  };

  const SharedSteps& steps_of(OperatorId id) {
    const OperationId operation = graph_.operators()[id].operation;
    PlannedOperation& planned = operations_[operation];
    if (!planned.operation) planned.operation = std::make_shared<const Operation>(graph_.operations()[operation]);
    const Strategy& strategy = decisions_->strategies[id];
    const SharedValue<KernelTraffic>& traffic = fusion_.traffic[id];
    for (const auto& known : planned.plans) {
      if (known->strategy == strategy && known->traffic == traffic) return *known;
    }
    auto plan = std::make_unique<SharedSteps>();
    plan->strategy = strategy;
    plan->traffic = traffic;
    for (std::size_t i = 0; i < planned.operation->operands.size(); ++i) {
      plan->operands.push_back(operand_layout(*planned.operation, strategy, program_.mesh, i));
    }
    plan->steps = operator_steps(planned.operation, strategy, costs_, redistributions_, traffic);
    for (const OperatorStep& step : plan->steps.steps) {
      plan->strategies.emplace_back(step.strategy);
      plan->collectives.emplace_back(step.collective);
    }
    planned.plans.push_back(std::move(plan));
    return *planned.plans.back();
  }

  ValueId add_value(SharedText name, std::optional<TensorId> tensor, const TensorType& type,
                    const TensorLayout& layout) {
    ProgramValue value;
    value.name = std::move(name);
    value.tensor = tensor;
    value.type = type;
    std::tie(value.layout, value.local_shape) = shared(layout, type.shape);
    value.bytes = num_bytes(value.local_shape, element_bytes(type.dtype));
    return program_.values.push_back(std::move(value));
  }

  /// A layout and its local shape, shared by all values with that layout and shape.
  std::pair<SharedValue<TensorLayout>, SharedShape> shared(const TensorLayout& layout, const SharedShape& whole) {
    LayoutShapes& known = shapes_[layout];
    if (known.local_shapes.empty()) known.layout = layout;
    for (const auto& [shape, local] : known.local_shapes) {
      if (shape == whole) return {known.layout, local};
    }
    return {known.layout, known.local_shapes.emplace_back(whole, local_shape(layout, whole)).second};
  }

  void emit(Instruction instruction) {
    instruction.runs = runs_;
    if (is_communication(instruction)) set_links(instruction);
    program_.instructions.push_back(std::move(instruction));
  }

  void set_links(Instruction& instruction) const {
    if (instruction.kind == InstructionKind::kHalo) {
      for (const Halo& rim : instruction.halo.items()) instruction.links |= costs_.links(rim.axes);
      return;
    }
    instruction.links = costs_.links(instruction.step->axes);
  }

  void make_versions(std::size_t time) {
    for (const VersionId id : made_at_[time]) {
      const TensorVersion& version = versions_.all[id];
      const TensorLayout& layout = decisions_->versions[id];
      const bool is_as_stored = version.kind != TensorVersion::Kind::kUpdated && version.stored &&
                                layout == decisions_->versions[*version.stored];
      if (is_as_stored) {
        version_values_[id] = version_values_[*version.stored];
        continue;
      }
      const ValueId from = *version_values_[*version.from];
      version_values_[id] = program_.values[from].layout == layout ? from : make_version(version, from, layout);
      if (version.kind == TensorVersion::Kind::kOutput) {
        program_.outputs.push_back({version.tensor, *version_values_[id]});
      } else if (version.kind == TensorVersion::Kind::kUpdated) {
        program_.updates.push_back({*graph_.tensor(version.tensor).updates, *version_values_[id]});
      }
    }
  }

  /// Makes a version with another layout than its source.
  ValueId make_version(const TensorVersion& version, ValueId from, const TensorLayout& layout) {
    runs_ = runs_of(graph_, version);
    const GraphTensor& tensor = graph_.tensor(version.tensor);
    Origin origin;
    origin.producer = tensor.producer ? graph_.operators()[*tensor.producer].name : tensor.name;
    std::string_view suffix;
    Pass pass = tensor.producer ? graph_.operators()[*tensor.producer].pass : Pass::kForward;
    switch (version.kind) {
      case TensorVersion::Kind::kRequested:
        suffix = "out";
        origin.kind = Origin::Kind::kForwardOp;
        origin.because = text("its out_strategy");
        break;
      case TensorVersion::Kind::kDelivered:
        pass = graph_.operators()[version.readers.front().op].pass;
        suffix = pass == Pass::kForward ? "delivered" : "delivered_backward";
        if (version.readers.size() == 1 && !version.stored) {
          set_consumer(version.readers.front().op, version.readers.front().operand, origin);
          break;
        }
        origin.because =
            text(fmt::format("{} reader{}", version.readers.size(), version.readers.size() == 1 ? "" : "s"));
        break;
      case TensorVersion::Kind::kKept:
        suffix = "kept";
        origin.because = text("kept for the backward pass");
        break;
      case TensorVersion::Kind::kOutput:
        suffix = "output";
        origin.because = text("an output of the model");
        break;
      default:
        suffix = "stored";
        pass = Pass::kUpdate;
        origin.kind = Origin::Kind::kParallelOptimizer;
        origin.because = text("stored so");
        break;
    }
    return redistribute(from, layout, origin, fmt::format("{}.{}", tensor.name, suffix), pass, {});
  }

  /// Emits the steps from a value's layout to another; returns the value itself if the layouts are equal.
  ValueId redistribute(ValueId from, const TensorLayout& to, const SharedValue<Origin>& origin, const std::string& name,
                       Pass pass, std::optional<OperatorId> op) {
    if (program_.values[from].layout == to) return from;
    const ProgramValue source = program_.values[from];
    const Redistribution& plan =
        redistributions_.plan(source.layout, to, source.type.shape, element_bytes(source.type.dtype));
    ValueId current = from;
    std::size_t number = 0;
    for (const CollectiveStep& step : plan.steps) {
      Instruction instruction;
      instruction.kind = InstructionKind::kCollective;
      instruction.name = fmt::format("{}.{}{}", name, to_string(step.kind), number++);
      instruction.inputs = {current};
      instruction.time = step.time;
      instruction.pass = pass;
      instruction.op = op;
      instruction.step = shared(step);
      instruction.origin = origin;
      const bool completes = step.kind == CollectiveKind::kReduceScatter || step.kind == CollectiveKind::kAllReduce;
      if (completes && origin->kind == Origin::Kind::kRedistribution)
        instruction.origin.edit().kind = reduction_origin(source);
      current = add_value(source.name, source.tensor, source.type, step.after);
      instruction.outputs = {current};
      emit(std::move(instruction));
    }
    return current;
  }

  /// A step of a redistribution, which the planner keeps, shared by all instructions that use it.
  const SharedValue<CollectiveStep>& shared(const CollectiveStep& step) {
    const auto [found, is_new] = shared_collectives_.try_emplace(&step);
    if (is_new) found->second = step;
    return found->second;
  }

  /// A text shared by thousands of origins.
  const SharedText& text(const std::string& words) { return texts_.try_emplace(words, words).first->second; }

  /// Why a partial value is reduced: it is a weight's gradient on its way to the update, or an operator's own partial
  /// result.
  Origin::Kind reduction_origin(const ProgramValue& source) const {
    if (!source.tensor) return Origin::Kind::kForwardOp;
    for (const Reader& reader : graph_.tensor(*source.tensor).readers) {
      const GraphOperator& op = graph_.operators()[reader.op];
      // Backward operators without a forward operator turn a parameter's gradient into what its update reads.
      if (op.pass == Pass::kUpdate || (op.pass == Pass::kBackward && !op.forward)) return Origin::Kind::kMirror;
    }
    return Origin::Kind::kForwardOp;
  }

  /// Gradients that wait for their update in its layout.
  void take_early(std::size_t time) {
    for (const VersionId id : taken_at_[time]) {
      const Reader& reader = versions_.all[id].readers.front();
      runs_ = graph_.runs(reader.op);
      version_values_[id] =
          taken(*version_values_[id], steps_of(reader.op).operands[reader.operand], reader.op, reader.operand);
    }
  }

  void set_consumer(OperatorId id, std::size_t operand, Origin& origin) const {
    origin.consumer = graph_.operators()[id].name;
    origin.operand = operand;
    origin.because = fmt::format("{} takes it so", graph_.operators()[id].name);
  }

  /// A value in the layout in which an operator takes it.
  ValueId taken(ValueId from, const TensorLayout& layout, OperatorId id, std::size_t operand) {
    if (program_.values[from].layout == layout) return from;
    const GraphOperator& op = graph_.operators()[id];
    const GraphTensor& tensor = graph_.tensor(op.operands[operand]);
    Origin origin;
    origin.producer = tensor.producer ? graph_.operators()[*tensor.producer].name : tensor.name;
    set_consumer(id, operand, origin);
    return redistribute(from, layout, origin, fmt::format("{}.in{}", op.name, operand), op.pass, id);
  }

  void lower_operator(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    runs_ = graph_.runs(id);
    const SharedSteps& plan = steps_of(id);
    std::vector<ValueId> values;  // as numbered by the steps
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      const TensorLayout& layout = plan.operands[operand];
      const std::optional<VersionId> version = versions_.read[id][operand];
      if (!version) {
        values.push_back(make_constant(op.operands[operand], layout, id, operand));
        continue;
      }
      values.push_back(taken(*version_values_[*version], layout, id, operand));
    }
    std::size_t run = 0, inserted = 0;
    for (std::size_t i = 0; i < plan.steps.steps.size(); ++i) add_step(plan, i, id, values, run, inserted);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId value = values[plan.steps.results[i]];
      program_.values[value].name = graph_.tensor(op.results[i]).name;
      program_.values[value].tensor = op.results[i];
      program_.values[value].in_registers = fusion_.in_registers[op.results[i]] != 0;
      version_values_[*versions_.first[op.results[i]]] = value;
    }
  }

  void add_step(const SharedSteps& plan, std::size_t number, OperatorId id, std::vector<ValueId>& values,
                std::size_t& run, std::size_t& inserted) {
    const OperatorStep& step = plan.steps.steps[number];
    const GraphOperator& op = graph_.operators()[id];
    Instruction instruction;
    instruction.pass = op.pass;
    instruction.is_copy = op.is_copy;
    instruction.op = id;
    instruction.time = step.time;
    for (const std::size_t input : step.inputs) instruction.inputs.push_back(values[input]);
    switch (step.kind) {
      case OperatorStep::Kind::kRun:
        instruction.kind = InstructionKind::kOperator;
        instruction.name = step.is_phase ? SharedText(fmt::format("{}.phase{}", op.name, run++)) : op.name;
        instruction.operation = step.operation;
        instruction.strategy = plan.strategies[number];
        instruction.is_phase = step.is_phase;
        break;
      case OperatorStep::Kind::kHalo:
        instruction.kind = InstructionKind::kHalo;
        instruction.name = fmt::format("{}.halo{}", op.name, inserted++);
        instruction.operation = step.operation;
        instruction.strategy = plan.strategies[number];
        instruction.halo = step.halo;
        instruction.origin =
            Origin{Origin::Kind::kForwardOp, op.name, op.name, step.halo.front().operand, text("halo of neighbours")};
        break;
      case OperatorStep::Kind::kComplete:
        instruction.kind = InstructionKind::kCollective;
        instruction.name = fmt::format("{}.{}{}", op.name, to_string(step.collective.kind), inserted++);
        instruction.step = plan.collectives[number];
        instruction.origin =
            Origin{Origin::Kind::kForwardOp, op.name, op.name, 0, text("statistics of a cut dimension")};
        break;
    }
    for (std::size_t i = 0; i < step.output_types.size(); ++i) {
      std::optional<TensorId> tensor;
      if (step.kind == OperatorStep::Kind::kHalo) tensor = program_.values[instruction.inputs[0]].tensor;
      const ValueId value = add_value(instruction.name, tensor, step.output_types[i], step.output_layouts[i]);
      if (step.kind == OperatorStep::Kind::kHalo) add_halo(program_.values[value], step.halo);
      instruction.outputs.push_back(value);
      values.push_back(value);
    }
    emit(std::move(instruction));
  }

  /// The result of a halo exchange includes the halo; its memory is bounded by the full halo.
  static void add_halo(ProgramValue& value, const std::vector<Halo>& halo) {
    Shape with_halo = value.local_shape;
    for (const Halo& side : halo) with_halo[side.dimension] += side.before + side.after;
    value.bytes = num_bytes(with_halo, element_bytes(value.type.dtype));
  }

  ValueId make_constant(TensorId tensor, const TensorLayout& layout, OperatorId op, std::size_t operand) {
    const GraphTensor& constant = graph_.tensor(tensor);
    const ValueId value = add_value(constant.name, tensor, constant.type, layout);
    Instruction instruction;
    instruction.kind = InstructionKind::kConstant;
    instruction.name = fmt::format("{}.in{}.constant", graph_.operators()[op].name, operand);
    instruction.outputs = {value};
    instruction.pass = graph_.operators()[op].pass;
    instruction.op = op;
    emit(std::move(instruction));
    return value;
  }

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const CostModel& costs_;
  RedistributionPlanner& redistributions_;
  const KernelFusion& fusion_;
  std::vector<std::vector<VersionId>> made_at_;   // by time
  std::vector<std::vector<VersionId>> taken_at_;  // by time: those taken early
  // The program being written.
  const Decisions* decisions_ = nullptr;
  ParallelProgram program_;
  IdVector<VersionId, OptionalIndex<ValueId>> version_values_;
  std::int64_t runs_ = 1;
  // Shared by the programs of several plans.
  IdVector<OperationId, PlannedOperation> operations_;
  std::unordered_map<const CollectiveStep*, SharedValue<CollectiveStep>> shared_collectives_;  // never iterated over
  std::unordered_map<std::string, SharedText> texts_;                                          // never iterated over
  struct LayoutShapes {
    SharedValue<TensorLayout> layout;
    std::vector<std::pair<SharedShape, SharedShape>> local_shapes;  // by full shape
  };
  std::unordered_map<TensorLayout, LayoutShapes> shapes_;  // never iterated over
};

}  // namespace

ParallelProgram lower(const OperatorGraph& graph, const TensorVersions& versions, const Decisions& decisions,
                      const CostModel& costs, RedistributionPlanner& redistributions, const KernelFusion& fusion) {
  return Lowering(graph, versions, costs, fusion, redistributions).run(decisions);
}

ParallelProgram lower(const OperatorGraph& graph, const TensorVersions& versions, const Decisions& decisions,
                      const CostModel& costs, RedistributionPlanner& redistributions) {
  return lower(graph, versions, decisions, costs, redistributions, kernel_fusion(graph, costs.fusion()));
}

/// State shared by the threads, each of which writes one program at a time.
struct ProgramWriter::State {
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const CostModel& costs;
  RedistributionPlanner& redistributions;  // those of the first writer
  const KernelFusion& fusion;
  std::mutex mutex;  // protects the members below
  std::vector<std::unique_ptr<RedistributionPlanner>> others;
  std::vector<std::unique_ptr<Lowering>> free;
  bool has_first = false;

  std::unique_ptr<Lowering> take() {
    const std::lock_guard lock(mutex);
    if (free.empty()) {
      const bool is_first = !std::exchange(has_first, true);
      if (!is_first) others.push_back(redistributions.another());
      return std::make_unique<Lowering>(graph, versions, costs, fusion, is_first ? redistributions : *others.back());
    }
    std::unique_ptr<Lowering> result = std::move(free.back());
    free.pop_back();
    return result;
  }
  void give_back(std::unique_ptr<Lowering> lowering) {
    const std::lock_guard lock(mutex);
    free.push_back(std::move(lowering));
  }
};

ProgramWriter::ProgramWriter(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                             RedistributionPlanner& redistributions, const KernelFusion& fusion)
    : state_(new State{graph, versions, costs, redistributions, fusion, {}, {}, {}}) {}

ProgramWriter::~ProgramWriter() = default;

ParallelProgram ProgramWriter::write(const Decisions& decisions) {
  std::unique_ptr<Lowering> lowering = state_->take();
  ParallelProgram program = lowering->run(decisions);
  state_->give_back(std::move(lowering));
  return program;
}

}  // namespace shardplan
