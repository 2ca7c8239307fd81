// Two texts in the form of MindSpore's step_parallel_begin.ir and step_parallel_end.ir.
//
// The first is written from the graph, the second from the program of one rank. An instruction becomes as many lines as
// MindSpore has operators for it (an all_gather along dimension 1 is AllGather, Split, Concat).

#include "report/plan/ir_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/folded_names.h"
#include "layouts/uneven.h"
#include "program/instruction_facts.h"
#include "program/loop_order.h"
#include "program/startup_broadcasts.h"
#include "report/metrics/plan_metrics.h"
#include "report/plan/fusion_report.h"
#include "report/plan/ir_writer.h"
#include "report/text/ir_text.h"
#include "report/text/strategy_text.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

class BeginReport : public IrWriter {
 public:
  explicit BeginReport(const Plan& plan) : IrWriter(plan, plan.mesh) {}

  std::string run() {
    text_ = title("step_parallel_begin");
    if (plan_.program.workers > 1) text_ += fmt::format("# {} workers, each of:\n", plan_.program.workers);
    text_ += fmt::format("# {}{}; full shapes, nothing inserted; {}, {}\n", counted(mesh_.num_devices(), "device"),
                         mesh_text(), counted(static_cast<std::int64_t>(num_operators(graph_)), "operator"),
                         counted(static_cast<std::int64_t>(num_parameters()), "parameter"));
    for (std::size_t i = 0; i < head_.size(); ++i) {
      const GraphTensor& tensor = graph_.tensor(head_[i]);
      const std::string name = parameter_name(i, tensor);
      names_[head_[i]] = name;
      text_ += fmt::format("{} : {}\n", name,
                           tensor.kind == TensorKind::kInput
                               ? tensor_text(tensor.type.dtype, tensor.type.shape)
                               : reference_text(tensor.type.dtype, tensor.type.shape, tensor.name));
    }
    for (const OperatorId id : graph_.operators().ids()) write(id);
    return std::move(text_);
  }

 private:
  std::string input_text(TensorId id) const {
    const GraphTensor& tensor = graph_.tensor(id);
    if (tensor.kind == TensorKind::kConstant) return constant_text(tensor, tensor.type.shape);
    return names_.at(id);
  }

  void write(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    if (is_border(graph_, id)) {
      names_[op.results[0]] = input_text(op.operands[0]);
      return;
    }
    IrLine line = operator_line(id, graph_.operation(id), plan_.strategies[id], op.name);
    for (const TensorId operand : op.operands) {
      line.inputs.push_back(input_text(operand));
      line.in_types.push_back(tensor_text(graph_.tensor(operand).type.dtype, graph_.tensor(operand).type.shape));
    }
    for (const TensorId result : op.results) {
      line.out_types.push_back(tensor_text(graph_.tensor(result).type.dtype, graph_.tensor(result).type.shape));
    }
    line.remarks.push_back(scope_remark(op));
    const std::size_t number = emit(line);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      names_[op.results[i]] = op.results.size() == 1 ? fmt::format("%{}", number) : fmt::format("%{}[{}]", number, i);
    }
  }

  std::map<TensorId, std::string> names_;
};

/// The mesh of one worker, whose devices have the worker's ranks.
DeviceMesh mesh_of_worker(const Plan& plan, std::int64_t worker) {
  if (worker == 0 || plan.mesh.axes().empty()) return plan.mesh;
  std::vector<std::int64_t> devices;
  for (std::int64_t i = 0; i < plan.mesh.num_devices(); ++i) devices.push_back(worker * plan.mesh.num_devices() + i);
  return DeviceMesh(plan.mesh.axes(), devices);
}

class EndReport : public IrWriter {
 public:
  EndReport(const Plan& plan, std::string_view file, std::int64_t rank)
      : IrWriter(plan, mesh_of_worker(plan, rank / plan.mesh.num_devices())),
        program_(plan.program),
        file_(file),
        worker_(static_cast<int>(rank / plan.mesh.num_devices())),
        rank_(rank % plan.mesh.num_devices()) {
    names_.resize(program_.values.size());
    shapes_.reserve(program_.values.size());
    for (const ProgramValue& value : program_.values) shapes_.push_back(value.local_shape);
  }

  std::string run() {
    write_title();
    write_head();
    write_broadcasts();
    std::vector<std::size_t> lines_before;  // by instruction: the number of lines before it
    for (const Instruction& instruction : program_.instructions) {
      lines_before.push_back(next_);
      if (!is_own(instruction)) continue;
      switch (instruction.kind) {
        case InstructionKind::kConstant:
          write_constant(instruction);
          break;
        case InstructionKind::kOperator:
          write_operator(instruction);
          break;
        case InstructionKind::kCollective:
          write_collective(instruction);
          break;
        case InstructionKind::kHalo:
          write_halo(instruction);
          break;
        case InstructionKind::kSend:
          write_send(instruction);
          break;
      }
    }
    lines_before.push_back(next_);
    write_turns(lines_before);
    return std::move(text_);
  }

 private:
  bool is_own(const Instruction& instruction) const {
    return worker_of(program_, instruction) == worker_ || result_worker(program_, instruction) == worker_;
  }

  /// The order in which the lines of the loop run if micro-batches overlap.
  void write_turns(const std::vector<std::size_t>& lines_before) {
    if (program_.loop_order.turns.empty()) return;
    struct Stretch {
      std::int64_t run = 0;
      std::size_t begin = 0, end = 0;  // of lines
    };
    std::vector<Stretch> stretches;
    for (LoopWalk walk(program_); !walk.is_done(); walk.next()) {
      const std::size_t i = walk.instruction();
      if (lines_before[i] == lines_before[i + 1] || !is_own(program_.instructions[i])) continue;
      if (stretches.empty() || stretches.back().run != walk.run()) {
        stretches.push_back({walk.run(), lines_before[i], 0});
      }
      stretches.back().end = lines_before[i + 1];
    }
    text_ += "# micro-batches overlap; what runs one after the other, as micro-batch: lines\n";
    for (const Stretch& stretch : stretches) {
      text_ += stretch.end == stretch.begin + 1
                   ? fmt::format("#   {}: %{}\n", stretch.run, stretch.begin)
                   : fmt::format("#   {}: %{} to %{}\n", stretch.run, stretch.begin, stretch.end - 1);
    }
  }

  /// Instructions of one kind.
  struct Tally {
    std::size_t count = 0;
    std::int64_t runs = 0;
    Picoseconds time = 0;  // of all runs

    void add(const Instruction& instruction) {
      ++count;
      runs += instruction.runs;
      time += instruction.time_of_step();
    }
    /// "10 collectives (176 us)", or with micro-batches "10 collectives (176 us in 15 runs)".
    std::string timed(std::string_view what) const {
      const auto own = static_cast<std::int64_t>(count);
      if (count == 0) return counted(0, what);
      return fmt::format("{} ({}{})", counted(own, what), format_time(time),
                         runs == own ? "" : fmt::format(" in {} runs", runs));
    }
  };

  void write_title() {
    Tally collectives, sends, receives;
    std::int64_t slices = 0, to_partial = 0, operators = 0;
    for (const Instruction& instruction : program_.instructions) {
      if (!is_own(instruction)) continue;
      if (instruction.kind == InstructionKind::kSend) {
        (worker_of(program_, instruction) == worker_ ? sends : receives).add(instruction);
      } else if (is_communication(instruction)) {
        collectives.add(instruction);
      } else if (instruction.kind == InstructionKind::kOperator) {
        if (!instruction.is_phase && !is_border(graph_, *instruction.op)) ++operators;
      } else if (instruction.kind == InstructionKind::kCollective) {
        ++(instruction.step->kind == CollectiveKind::kToPartial ? to_partial : slices);
      }
    }
    text_ = title(file_);
    for (const std::string& line : fusion_ids(plan_)) text_ += fmt::format("# {}\n", line);
    if (program_.workers > 1) {
      text_ += fmt::format("# MS_WORKER {} of {}: {}, {}, {}\n", worker_, program_.workers,
                           counted(operators, "operator"), sends.timed("send"), receives.timed("receive"));
      text_ +=
          fmt::format("# whoever comes to a send or a receive waits for the other worker, in the order {} this file\n",
                      program_.loop_order.turns.empty() ? "of" : "at the end of");
    }
    text_ += fmt::format(
        "# rank {} of {}{}; local shapes; {}, {}, {}{}\n", worker_ * mesh_.num_devices() + rank_,
        program_.workers * mesh_.num_devices(), mesh_text(),
        counted(program_.workers > 1 ? operators : static_cast<std::int64_t>(num_operators(graph_)), "operator"),
        counted(slices, "slice"), to_partial > 0 ? fmt::format("{} ToPartial, ", to_partial) : "",
        collectives.timed("collective"));
    text_ += loop_remarks(program_);
  }

  void write_head() {
    std::map<TensorId, ValueId> given;
    for (const Binding& binding : program_.given) {
      if (program_.values[binding.value].worker == worker_) given.emplace(binding.tensor, binding.value);
    }
    for (std::size_t i = 0; i < head_.size(); ++i) {
      const auto found = given.find(head_[i]);
      if (found == given.end()) continue;
      const GraphTensor& tensor = graph_.tensor(head_[i]);
      const ProgramValue& value = program_.values[found->second];
      const std::string name = parameter_name(i, tensor);
      names_[found->second] = name;
      text_ += fmt::format("{} : {}  # origin {}, layout {}", name,
                           tensor.kind == TensorKind::kInput
                               ? tensor_text(value.type.dtype, value.local_shape)
                               : reference_text(value.type.dtype, value.local_shape, tensor.name),
                           tuple_text(value.type.shape), to_string(value.layout, mesh_));
      const std::string holds = holds_text(value.layout, mesh_, value.type.shape);
      if (!holds.empty()) text_ += ", " + holds;
      if (tensor.kind == TensorKind::kInput && value.layout->is_replicated()) text_ += ": full_batch";
      text_ += '\n';
    }
  }

  /// parameter_broadcast: the broadcasts before the first step.
  void write_broadcasts() {
    if (program_.broadcasts.empty()) return;
    text_ += fmt::format("# once, before the first step, {} in all:\n", format_time(startup_time(program_)));
    for (std::size_t i = 0; i < program_.broadcasts.size(); ++i) {
      const StartupBroadcast& broadcast = program_.broadcasts[i];
      const ValueId id = program_.given[broadcast.given].value;
      const ProgramValue& value = program_.values[id];
      if (value.worker != worker_) continue;
      const RankGroup group = group_of(mesh_, broadcast.axes, rank_);
      IrLine line;
      line.name = value.name;
      line.op = "Broadcast";
      line.instance = "parameter_broadcast_" + value.name;
      line.attributes = fmt::format("root_rank: {}, group: {}, rank_list: {}, group_ranks: {}, index: {}",
                                    group.ranks.front(), group.name(), tuple_text(group.ranks), group.group_ranks(), i);
      line.inputs = {value_name(id)};
      line.in_types = {value_type(id)};
      line.out_types = line.in_types;
      line.remarks.push_back(
          fmt::format("{} B, {}; because parameter_broadcast: devices begin with numbers of their own", value.bytes,
                      format_time(broadcast.time)));
      names_[id] = fmt::format("%{}", emit(line));
    }
    text_ += "# every step:\n";
  }

  const std::string& value_name(ValueId id) const { return names_[id]; }
  std::string value_type(ValueId id) const { return tensor_text(program_.values[id].type.dtype, shapes_[id.value()]); }

  void write_constant(const Instruction& instruction) {
    const ProgramValue& value = program_.values[instruction.outputs[0]];
    names_[instruction.outputs[0]] = constant_text(graph_.tensor(*value.tensor), value.local_shape);
  }

  void name_outputs(const Instruction& instruction, std::size_t number) {
    const std::size_t count = instruction.outputs.size();
    for (std::size_t i = 0; i < count; ++i) {
      names_[instruction.outputs[i]] = count == 1 ? fmt::format("%{}", number) : fmt::format("%{}[{}]", number, i);
    }
  }

  /// Fills in inputs, types, full shapes and layouts.
  void describe_values(IrLine& line, const Instruction& instruction) const {
    std::vector<Shape> in_shapes, out_shapes;
    std::vector<const TensorLayout*> in_layouts, out_layouts;
    for (const ValueId input : instruction.inputs) {
      line.inputs.push_back(value_name(input));
      line.in_types.push_back(value_type(input));
      in_shapes.push_back(program_.values[input].type.shape);
      in_layouts.push_back(&*program_.values[input].layout);
    }
    for (const ValueId output : instruction.outputs) {
      line.out_types.push_back(value_type(output));
      out_shapes.push_back(program_.values[output].type.shape);
      out_layouts.push_back(&*program_.values[output].layout);
    }
    line.remarks.push_back(fmt::format("origin_input_shapes: {}, origin_output_shape: {}", shapes_text(in_shapes),
                                       out_shapes.size() == 1 ? tuple_text(out_shapes[0]) : shapes_text(out_shapes)));
    line.remarks.push_back(
        fmt::format("layout: {} -> {}", quoted_layouts(in_layouts, mesh_), quoted_layouts(out_layouts, mesh_)));
    line.remarks.push_back(fmt::format("in_layout: {}, out_layout: {}", matrices_text(in_layouts, mesh_),
                                       matrices_text(out_layouts, mesh_)));
  }

  void write_operator(const Instruction& instruction) {
    if (is_border(graph_, *instruction.op)) {
      names_[instruction.outputs[0]] = value_name(instruction.inputs[0]);
      return;
    }
    IrLine line = operator_line(*instruction.op, *instruction.operation, instruction.strategy, instruction.name);
    describe_values(line, instruction);
    line.remarks.push_back(scope_remark(graph_.operators()[*instruction.op]));
    name_outputs(instruction, emit(line));
  }

  // --- inserted operators --------------------------------------------------------------------------------------------

  /// "block1.in0" for a redistribution into a border, "head.in1" for one into an operator, else the tensor's name.
  std::string inserted_name(const Instruction& instruction) const {
    const Origin& origin = instruction.origin;
    if (origin.kind != Origin::Kind::kRedistribution || origin.consumer.empty()) {
      return program_.values[instruction.outputs[0]].name;
    }
    const std::optional<OperatorId> consumer = graph_.find_operator(origin.consumer);
    if (consumer && is_border(graph_, *consumer)) return origin.consumer;
    return fmt::format("{}.in{}", origin.consumer, origin.operand);
  }

  std::string parameter_or_tensor(const Instruction& instruction) const {
    const std::optional<TensorId> parameter = stored_tensor(graph_, program_, instruction);
    return parameter ? graph_.tensor(*parameter).name : program_.values[instruction.outputs[0]].name;
  }

  std::string instance_name(const Instruction& instruction, std::string_view op) const {
    switch (instruction.origin->kind) {
      case Origin::Kind::kForwardOp:
        return "forward_op_" + instruction.origin->producer;
      case Origin::Kind::kRedistribution:
        return fmt::format("redistribution_op_{}{}", inserted_name(instruction), op);
      case Origin::Kind::kMirror:
        // The gradient of a sharded update is not mirrored: each device needs the sum of its own slice only.
        if (instruction.step->kind == CollectiveKind::kReduceScatter) break;
        return "mirror_" + parameter_or_tensor(instruction);
      case Origin::Kind::kParallelOptimizer:
        break;
    }
    return "parallel_optimizer_" + parameter_or_tensor(instruction);
  }

  std::string taken_text(const Instruction& instruction) const {
    const std::optional<OperatorId> consumer = graph_.find_operator(instruction.origin->consumer);
    const std::size_t operand = instruction.origin->operand;
    if (!consumer || operand >= graph_.operation(*consumer).operands.size()) return "";
    const Operation& operation = graph_.operation(*consumer);
    const auto tuples = input_tuples(operation, plan_.strategies[*consumer], mesh_);
    if (tuples) return fmt::format("{} takes ({})", instruction.origin->consumer, tuple_text((*tuples)[operand]));
    return fmt::format("{} takes {}", instruction.origin->consumer,
                       to_string(operand_layout(operation, plan_.strategies[*consumer], mesh_, operand), mesh_));
  }

  std::string reason(const Instruction& instruction) const {
    const Origin& origin = instruction.origin;
    if (const auto consumer = graph_.find_operator(origin.consumer); consumer && is_border(graph_, *consumer)) {
      const GraphOperator& border = graph_.operators()[*consumer];
      const bool is_out = !border.strategy->out.empty() && border.strategy->in.empty();
      const SourcePlace& place = is_out ? border.strategy->out_place : border.strategy->in_place;
      std::string text = fmt::format("{} has {} {}", border.border_of, is_out ? "out_strategy" : "in_strategy",
                                     entries_text(is_out ? border.strategy->out : border.strategy->in));
      if (place.line > 0) text += fmt::format(", {}:{}", place.file, place.line);
      return text;
    }
    const bool is_sum = instruction.kind == InstructionKind::kCollective && !instruction.step->before.partial.empty();
    switch (origin.kind) {
      case Origin::Kind::kMirror:
        return fmt::format("each device has the gradient of {} over its own part of the batch only",
                           parameter_or_tensor(instruction));
      case Origin::Kind::kParallelOptimizer:
        return fmt::format("{} is stored as {}, its update is computed as {}", parameter_or_tensor(instruction),
                           to_string(instruction.step->after, mesh_), to_string(instruction.step->before, mesh_));
      case Origin::Kind::kForwardOp:
        if (is_sum && origin.consumer != origin.producer) {
          const std::string taken = taken_text(instruction);
          return fmt::format("{} sums a dimension cut {} ways{}", origin.producer, num_pieces(instruction.step->axes),
                             taken.empty() ? "" : ", " + taken);
        }
        return origin.because;
      case Origin::Kind::kRedistribution:
        break;
    }
    const std::string taken = taken_text(instruction);
    return fmt::format("{} gives {}, {}", origin.producer, to_string(instruction.step->before, mesh_),
                       taken.empty() ? origin.because.str() : taken);
  }

  /// `more` is inserted between the fusion and the ranks: "op: sum, ".
  std::string group_attributes(const Instruction& instruction, const RankGroup& group, std::string_view op,
                               std::string_view more) {
    return fmt::format("group: {}, fusion: {}, {}rank_list: {}, group_ranks: {}, index: {}", group.name(),
                       instruction.fusion, more, tuple_text(group.ranks), group.group_ranks(),
                       index_of_kind_[std::string(op)]++);
  }

  void describe_inserted(IrLine& line, const Instruction& instruction) {
    describe_values(line, instruction);
    if (is_communication(instruction)) {
      line.remarks.push_back(fmt::format(
          "{} B in, {} B out, {}; because {}", program_.values[instruction.inputs[0]].bytes,
          program_.values[instruction.outputs[0]].bytes, format_time(instruction.time), reason(instruction)));
      if (instruction.in_pieces) {
        line.remarks.push_back(fmt::format("in {} pieces beside its product", num_pieces(instruction.step->axes)));
      }
    } else {
      line.remarks.push_back(fmt::format("0 B, 0 us; because {}", reason(instruction)));
    }
    if (const std::uint32_t fusion = instruction.fusion; fusion > 0 && last_bucket_ < fusion) {
      last_bucket_ = fusion;
      line.remarks.push_back(fmt::format("{}, {} B in all, {}", bucket_name(program_, fusion),
                                         program_.buckets[fusion - 1].group_bytes,
                                         format_time(program_.buckets[fusion - 1].time)));
    }
  }

  /// A step that is one MindSpore operator.
  void write_plain(const Instruction& instruction, const std::string& op, const std::string& attributes,
                   const std::string& call = "", const std::string& formula = "") {
    IrLine line;
    line.name = inserted_name(instruction);
    line.op = op;
    line.instance = instance_name(instruction, op);
    line.attributes = attributes;
    describe_inserted(line, instruction);
    if (!call.empty()) line.inputs.push_back(call);
    if (!formula.empty()) line.remarks[1] += "; " + formula;
    name_outputs(instruction, emit(line));
  }

  /// Prints one operator of an expanded step; only the last one gets the remarks.
  std::string write_part(const Instruction& instruction, const std::string& op, const std::string& input,
                         const std::vector<Shape>& in, const std::vector<Shape>& out, const std::string& attributes,
                         bool is_last) {
    const DataType dtype = program_.values[instruction.outputs[0]].type.dtype;
    IrLine line;
    line.name = inserted_name(instruction);
    line.op = op;
    line.instance = instance_name(instruction, op);
    line.attributes = attributes;
    if (is_last) describe_inserted(line, instruction);
    line.inputs = {input};
    line.in_types.clear();
    line.out_types.clear();
    for (const Shape& shape : in) line.in_types.push_back(tensor_text(dtype, shape));
    for (const Shape& shape : out) line.out_types.push_back(tensor_text(dtype, shape));
    return fmt::format("%{}", emit(line));
  }

  void write_collective(const Instruction& instruction) {
    const CollectiveStep& step = instruction.step;
    const ProgramValue& input = program_.values[instruction.inputs[0]];
    const RankGroup group = group_of(mesh_, step.axes, rank_);
    const std::string padding = padding_text(step, input.type.shape);
    const auto grouped = [&](std::string_view op, std::string_view more) {
      return group_attributes(instruction, group, op, padding + std::string(more));
    };
    const std::string reduction = fmt::format("op: {}, ", to_string(step.reduction));
    const std::size_t pieces = group.ranks.size();
    switch (step.kind) {
      case CollectiveKind::kSlice: {
        const SliceText slice = slice_text(step, mesh_, input.type.shape, rank_);
        write_plain(instruction, "StridedSlice",
                    "begin_mask: 0, end_mask: 0, ellipsis_mask: 0, new_axis_mask: 0, shrink_axis_mask: 0", slice.call,
                    slice.formula);
        return;
      }
      case CollectiveKind::kToPartial:
        write_plain(instruction, "ToPartial", fmt::format("{}axes: {}", reduction, mesh_.to_string(step.axes)));
        return;
      case CollectiveKind::kCollectivePermute:
        write_plain(instruction, "CollectivePermute", grouped("CollectivePermute", ""));
        return;
      case CollectiveKind::kAllToAll:
        write_plain(instruction, "AlltoAll",
                    grouped("AlltoAll", fmt::format("split_count: {}, split_dim: {}, concat_dim: {}, ", pieces,
                                                    *step.to_dim, *step.from_dim)));
        return;
      case CollectiveKind::kAllReduce: {
        std::string attributes = grouped("AllReduce", reduction);
        if (instruction.origin->kind == Origin::Kind::kMirror) {
          attributes += fmt::format(", dev_num: {}, mean_flag: false", pieces);
        }
        write_plain(instruction, "AllReduce", attributes);
        return;
      }
      case CollectiveKind::kAllGather: {
        if (*step.from_dim == 0) {
          write_plain(instruction, "AllGather", grouped("AllGather", ""));
          return;
        }
        // Gather along dimension 0, split there again, and concatenate along the right dimension.
        Shape stacked = input.local_shape;
        stacked[0] *= static_cast<std::int64_t>(pieces);
        const std::vector<Shape> parts(pieces, input.local_shape);
        std::string at = write_part(instruction, "AllGather", value_name(instruction.inputs[0]), {input.local_shape},
                                    {stacked}, grouped("AllGather", ""), false);
        at = write_part(instruction, "Split", at, {stacked}, parts, fmt::format("axis: 0, output_num: {}", pieces),
                        false);
        at = write_part(instruction, "Concat", at, parts, {program_.values[instruction.outputs[0]].local_shape},
                        fmt::format("axis: {}, N: {}", *step.from_dim, pieces), true);
        names_[instruction.outputs[0]] = at;
        return;
      }
      case CollectiveKind::kReduceScatter: {
        if (*step.to_dim == 0) {
          write_plain(instruction, "ReduceScatter", grouped("ReduceScatter", reduction));
          return;
        }
        const Shape& piece = program_.values[instruction.outputs[0]].local_shape;
        Shape stacked = piece;
        stacked[0] *= static_cast<std::int64_t>(pieces);
        const std::vector<Shape> parts(pieces, piece);
        std::string at = write_part(instruction, "Split", value_name(instruction.inputs[0]), {input.local_shape}, parts,
                                    fmt::format("axis: {}, output_num: {}", *step.to_dim, pieces), false);
        at = write_part(instruction, "Concat", at, parts, {stacked}, fmt::format("axis: 0, N: {}", pieces), false);
        at =
            write_part(instruction, "ReduceScatter", at, {stacked}, {piece}, grouped("ReduceScatter", reduction), true);
        names_[instruction.outputs[0]] = at;
        return;
      }
    }
  }

  void write_halo(const Instruction& instruction) {
    const ValueId input = instruction.inputs[0];
    std::vector<AxisRef> axes;
    for (const Halo& halo : instruction.halo) axes.insert(axes.end(), halo.axes.begin(), halo.axes.end());
    const HaloExchange exchange = halo_exchange(instruction, mesh_, program_.values[input].local_shape, rank_);
    shapes_[instruction.outputs[0].value()] = exchange.shape;
    write_plain(instruction, "NeighborExchangeV2",
                exchange.attributes + ", " +
                    group_attributes(instruction, group_of(mesh_, axes, rank_), "NeighborExchangeV2", ""));
  }

  /// MindSpore's RpcSend and RpcRecv.
  void write_send(const Instruction& instruction) {
    const bool is_sender = worker_of(program_, instruction) == worker_;
    const int other = is_sender ? result_worker(program_, instruction) : worker_of(program_, instruction);
    IrLine line;
    line.op = is_sender ? "RpcSend" : "RpcRecv";
    line.name = program_.values[instruction.inputs[0]].name;
    line.instance = instruction.name;
    const char* const peer = is_sender ? "send_dst" : "recv_src";
    line.attributes = fmt::format("{}_ranks: ({}), {}_roles: (MS_WORKER), inter_process_edge_names: ({})", peer, other,
                                  peer, instruction.name);
    if (mesh_.num_devices() > 1) {
      line.attributes += fmt::format(", device: {}", other * mesh_.num_devices() + rank_);
    }
    describe_values(line, instruction);
    if (!is_sender) {
      line.inputs.clear();
      line.in_types.clear();
    } else {
      line.out_types.clear();
    }
    line.remarks.push_back(fmt::format("{} B, {}; because {} of worker {} reads {}",
                                       program_.values[instruction.inputs[0]].bytes, format_time(instruction.time),
                                       instruction.origin->consumer.empty() ? "what" : instruction.origin->consumer,
                                       result_worker(program_, instruction), line.name));
    const std::size_t number = emit(line);
    if (!is_sender) name_outputs(instruction, number);
  }

  const ParallelProgram& program_;
  const std::string_view file_;
  const int worker_;
  const std::int64_t rank_;  // among the worker's devices
  IdVector<ValueId, std::string> names_;
  std::vector<Shape> shapes_;  // this rank's, with the halo it holds
  std::map<std::string, std::size_t> index_of_kind_;
  std::uint32_t last_bucket_ = 0;  // the last one printed
};

}  // namespace

std::string begin_report(const Plan& plan) { return BeginReport(plan).run(); }

std::string end_report(const Plan& plan, std::int64_t rank) { return EndReport(plan, "step_parallel_end", rank).run(); }

std::string worker_report(const Plan& plan, int worker) {
  return EndReport(plan, fmt::format("worker_{}", worker), worker * plan.mesh.num_devices()).run();
}

}  // namespace shardplan
