// plan.json is written from the plan in the order of its schema (plan_schema.cc), one function per section.
//
// It contains the decisions, from which everything else can be recomputed, and the resulting figures for other
// programs. Operators and tensors are identified by name, values of the program by number, so that a file can be read
// against a model whose operators are numbered differently.

#include "report/plan_file/plan_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_text.h"
#include "base/short_vector.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "graph/tensor_versions.h"
#include "model/model_source.h"
#include "program/instruction_facts.h"
#include "program/startup_broadcasts.h"
#include "program/timeline.h"
#include "program/worker_timeline.h"
#include "report/metrics/padding_waste.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/step_path.h"
#include "report/plan_file/sha256.h"
#include "report/text/strategy_table.h"
#include "report/text/strategy_text.h"

namespace shardplan {
namespace {

Json axes_json(const DeviceMesh& mesh, const std::vector<AxisRef>& axes) {
  Json list = Json::array();
  for (const AxisRef& axis : axes) list.push_back(mesh.to_string(axis));
  return list;
}

Json attribute_json(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
          // JSON has no infinities; they are written as text, and read back.
          return std::isfinite(value) ? Json(value) : Json(to_string(Attribute(value)));
        } else {
          return Json(value);
        }
      },
      attribute);
}

Json tuples_json(const std::optional<StrategyTuples>& tuples) { return tuples ? Json(*tuples) : Json(nullptr); }

std::string_view kind_name(TensorKind kind) {
  switch (kind) {
    case TensorKind::kInput:
      return "input";
    case TensorKind::kParameter:
      return "parameter";
    case TensorKind::kState:
      return "state";
    case TensorKind::kConstant:
      return "constant";
    case TensorKind::kResult:
      return "result";
  }
  return {};
}

std::string_view kind_name(Origin::Kind kind) {
  switch (kind) {
    case Origin::Kind::kForwardOp:
      return "forward_op";
    case Origin::Kind::kRedistribution:
      return "redistribution";
    case Origin::Kind::kMirror:
      return "mirror";
    case Origin::Kind::kParallelOptimizer:
      return "parallel_optimizer";
  }
  return {};
}

Json seconds_json(const StepTime& time) {
  return {{"step", to_seconds(time.step())},         {"additive", to_seconds(time.additive())},
          {"compute", to_seconds(time.computation)}, {"communication", to_seconds(time.communication)},
          {"exposed", to_seconds(time.exposed)},     {"repeated", to_seconds(time.repeated)}};
}

class PlanWriter {
 public:
  explicit PlanWriter(const Plan& plan) : plan_(plan), graph_(*plan.graph), program_(plan.program) {
    computation_.resize(graph_.operators().size());
    producer_.resize(program_.values.size());
    spans_ = plan.spans();
    path_ = step_path(plan);
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      for (std::size_t r = 0; r < instruction.outputs.size(); ++r) producer_[instruction.outputs[r]] = {true, i, r};
      if (instruction.kind == InstructionKind::kOperator) computation_[*instruction.op] += instruction.time_of_step();
    }
  }

  std::string run(const ProofRecord* proof) const {
    JsonDocument document;
    document.add("schema", plan_schema_name());
    document.add("version", SHARDPLAN_VERSION);
    document.add("model", {{"name", graph_.name()},
                           {"file", plan_.model->source->file()},
                           {"sha256", sha256(plan_.model->source->text())},
                           {"text", plan_.model->source->text()}});
    document.add("cluster", {{"name", plan_.cluster.name},
                             {"sha256", sha256(plan_.cluster.text)},
                             {"text", plan_.cluster.text},
                             {"assumed", assumed()}});
    document.add("options", options());
    document.add("mesh", mesh());
    if (program_.workers > 1) document.add("workers", workers());
    document.add("result", result());
    document.add("baselines", baselines());
    document.begin_list("operators");
    document.add_rows(graph_.operators().size(), [&](std::size_t i) { return operator_json(OperatorId{i}); });
    document.begin_list("tensors");
    add_tensors(document);
    if (!program_.broadcasts.empty()) document.add("startup", startup());
    document.begin_list("program");
    document.add_rows(program_.instructions.size(), [&](std::size_t i) { return instruction_json(i); });
    document.add("memory", memory());
    if (!plan_.model->padded_dims.empty()) document.add("padding", padding());
    document.add("proof", proof == nullptr ? Json(nullptr) : proof_json(*proof));
    return std::move(document).finish();
  }

 private:
  struct Producer {
    bool is_made = false;  // by an instruction; otherwise given
    std::size_t instruction = 0;
    std::size_t result = 0;
  };

  Json assumed() const {
    Json list = Json::array();
    for (const auto& [key, source] : plan_.cluster.sources) {
      if (source.find("assumed") != std::string::npos || source.find("to be verified") != std::string::npos) {
        list.push_back(key);
      }
    }
    return list;
  }

  Json options() const {
    const PlanOptions& options = plan_.options;
    Json json = {{"level", number_of(options.level)},
                 {"costs", to_string(options.costs)},
                 {"search", options.search},
                 {"seed", options.seed},
                 {"memory_slack", options.memory_slack},
                 {"capacity_bytes", options.capacity ? Json(*options.capacity) : Json(nullptr)},
                 {"layers", options.uniform_layers ? "uniform" : "free"},
                 {"overlap", options.overlap},
                 {"memory", options.bounded_redistribution ? "bounded" : "unbounded"},
                 {"dims", Json(options.dims)},
                 {"set", Json(options.strategies)}};
    if (!options.pieces.empty()) json["pieces"] = axes_json(plan_.mesh, options.pieces);
    if (options.time_limit > 0) json["time_limit_seconds"] = options.time_limit;
    return json;
  }

  Json mesh() const {
    Json axes = Json::array();
    for (std::size_t i = 0; i < plan_.mesh.axes().size(); ++i) {
      const MeshAxis& axis = plan_.mesh.axes()[i];
      axes.push_back({{"name", axis.name},
                      {"size", axis.size},
                      {"levels", spanned_levels(plan_.cluster, plan_.mesh, plan_.mesh.whole(i))}});
    }
    Json devices = Json::array();
    for (std::int64_t point = 0; point < plan_.mesh.num_devices(); ++point) {
      devices.push_back(plan_.mesh.devices().empty() ? point : plan_.mesh.devices()[static_cast<std::size_t>(point)]);
    }
    return {{"axes", axes}, {"devices", devices}};
  }

  /// With `place`: the figures of each worker.
  Json workers() const {
    const WorkerTimeline times = worker_timeline(program_);
    Json list = Json::array();
    for (std::size_t w = 0; w < times.workers.size(); ++w) {
      const WorkerUse& use = times.workers[w];
      list.push_back({{"worker", w},
                      {"operators", use.operators},
                      {"sends", use.sends},
                      {"receives", use.receives},
                      {"sent_bytes", use.sent},
                      {"seconds",
                       {{"compute", to_seconds(use.computation)},
                        {"collectives", to_seconds(use.collectives)},
                        {"send", to_seconds(use.sending)},
                        {"receive", to_seconds(use.receiving)},
                        {"waits", to_seconds(times.end - use.busy())}}},
                      {"micro_batches_at_once", use.in_flight},
                      {"peak_bytes", plan_.memory.worker_peaks[w]}});
    }
    return list;
  }

  Json result() const {
    const auto quantity = [](const LevelValue& value) {
      return value.is_in_bytes() ? Json(value.amount) : Json(to_seconds(value.amount));
    };
    const std::optional<double> share = gap(plan_.cost, plan_.bound);
    Json json = {{"status", to_string(plan_.status)},
                 {"candidates", plan_.candidates_complete ? "complete" : "restricted"},
                 {"objective", to_string(plan_.options.level)},
                 {"cost", quantity(plan_.cost)},
                 {"bound", quantity(plan_.bound)},
                 {"gap", share ? Json(*share) : Json(nullptr)},
                 {"ratio", ratio_json(plan_.time)},
                 {"seconds", seconds_json(plan_.time)},
                 {"peak_bytes", plan_.memory.peak},
                 {"usable_bytes", plan_.usable}};
    if (!plan_.tried_shapes.empty()) {
      Json list = Json::array();
      for (const TriedShape& shape : plan_.tried_shapes) {
        Json tried = {{"pieces", axes_json(plan_.mesh, shape.pieces)}, {"status", to_string(shape.status)}};
        if (is_found(shape.status)) {
          tried["seconds"] = to_seconds(shape.time.step());
          tried["communication_seconds"] = to_seconds(shape.time.communication);
          tried["peak_bytes"] = shape.peak;
        }
        if (shape.status != PlanStatus::kInfeasible) tried["bound"] = quantity(shape.bound);
        list.push_back(std::move(tried));
      }
      json["tried_shapes"] = list;
    }
    if (plan_.overlapped_bound) {
      const std::optional<double> open = open_gap(plan_);
      json["overlapped"] = {{"step", to_seconds(plan_.time.step())},
                            {"bound", to_seconds(*plan_.overlapped_bound)},
                            {"gap", open ? Json(*open) : Json(nullptr)}};
      if (plan_.is_bound_one_block_ahead) json["overlapped"]["one_block_ahead"] = true;
    }
    if (!path_.shares.empty()) json["critical_path"] = critical_path_json();
    if (plan_.free_bound) json["free_bound"] = quantity(*plan_.free_bound);
    if (plan_.mindspore) {
      json["mindspore"] = {{"weighted_bytes", plan_.mindspore->cost.weighted_bytes()},
                           {"bound", plan_.mindspore->bound.weighted_bytes()}};
    }
    return json;
  }

  Json critical_path_json() const {
    Json list = Json::array();
    for (const PathClass& one : path_classes(plan_, path_)) {
      Json row{{"class", one.name}, {"seconds", to_seconds(one.time())}};
      for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kUpdate}) {
        row[std::string(to_string(pass))] = to_seconds(one.passes[static_cast<std::size_t>(pass)]);
      }
      row["slowed"] = to_seconds(one.slowed);
      list.push_back(std::move(row));
    }
    return list;
  }

  static Json ratio_json(const StepTime& time) {
    const std::optional<double> value = ratio(time);
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
  }

  Json baselines() const {
    Json list = Json::array();
    for (const Baseline& baseline : plan_.baselines) {
      list.push_back({{"name", baseline.name},
                      {"seconds", seconds_json(baseline.time)},
                      {"peak_bytes", baseline.peak},
                      {"fits", baseline.fits}});
    }
    return list;
  }

  Json strategy_json(const Operation& operation, const Strategy& strategy, std::string_view origin) const {
    Json factors = Json::object();
    for (std::size_t f = 0; f < strategy.factors.size(); ++f) {
      if (!strategy.factors[f].empty()) {
        factors[operation.rule.factors[f].name] = axes_json(plan_.mesh, strategy.factors[f]);
      }
    }
    Json json;
    if (!origin.empty()) json["origin"] = origin;
    json["factors"] = factors;
    if (!strategy.partial.empty()) {
      json["partial"] = {{"axes", axes_json(plan_.mesh, strategy.partial)},
                         {"group", strategy.group},
                         {"reduction", to_string(strategy.reduction)}};
    }
    json["in"] = tuples_json(input_tuples(operation, strategy, plan_.mesh));
    json["out"] = tuples_json(output_tuples(operation, strategy, plan_.mesh));
    return json;
  }

  Json side(const GraphTensor& tensor, const TensorLayout& layout) const {
    return {{"tensor", tensor.name},
            {"layout", to_string(layout, plan_.mesh)},
            {"local_shape", local_shape(layout, tensor.type.shape)}};
  }

  Json operator_json(OperatorId id) const {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    const Strategy& strategy = plan_.strategies[id];
    Json attributes = Json::object();
    for (const auto& [name, value] : operation.attributes) {
      if (is_given(value)) attributes[name] = attribute_json(value);
    }
    Json in = Json::array(), out = Json::array();
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      in.push_back(side(graph_.tensor(op.operands[i]), operand_layout(operation, strategy, plan_.mesh, i)));
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      out.push_back(side(graph_.tensor(op.results[i]), result_layout(operation, strategy, plan_.mesh, i)));
    }
    return {{"name", op.name},
            {"op", operation.type->name},
            {"attributes", attributes},
            {"stage", to_string(op.pass)},
            {"scope", op.scope},
            {"place", op.is_placed ? Json(op.worker) : Json(nullptr)},
            {"source", {{"line", op.place.line}, {"column", op.place.column}}},
            {"strategy", strategy_json(operation, strategy, strategy_origin(plan_, id))},
            {"in", in},
            {"out", out},
            {"seconds", to_seconds(computation_[id])},
            {"flops", static_cast<double>(graph_.runs(id)) * flops(operation, local_extents(operation, strategy))}};
  }

  void add_tensors(JsonDocument& document) const {
    std::vector<const ProgramValue*> first(graph_.tensors().size(), nullptr);
    for (const ProgramValue& value : program_.values) {
      if (value.tensor && first[value.tensor->value()] == nullptr) first[value.tensor->value()] = &value;
    }
    const TensorVersions known = tensor_versions(graph_);
    IdVector<TensorId, ShortVector<VersionId>> versions(graph_.tensors().size());
    for (const VersionId version : known.all.ids()) versions[known.all[version].tensor].push_back(version);
    document.add_rows(graph_.tensors().size(), [&](std::size_t number) {
      const TensorId id{number};
      const GraphTensor& tensor = graph_.tensor(id);
      Json json{{"name", tensor.name},
                {"kind", kind_name(tensor.kind)},
                {"dtype", to_string(tensor.type.dtype)},
                {"shape", tensor.type.shape}};
      if (tensor.padding) json["unpadded_shape"] = real_shape(*tensor.padding);
      if (const ProgramValue* value = first[id.value()]; value != nullptr) {
        json["layout"] = to_string(value->layout, plan_.mesh);
        if (const auto matrix = per_axis_mindspore_layout(value->layout, plan_.mesh)) {
          json["device_matrix"] = matrix->device_matrix;
          Json map = Json::array();
          for (const auto& entry : matrix->tensor_map) {
            map.push_back(entry.empty() ? Json(-1) : entry.size() == 1 ? Json(entry[0]) : Json(entry));
          }
          json["tensor_map"] = map;
        } else {
          json["device_matrix"] = nullptr;
          json["tensor_map"] = nullptr;
        }
        json["local_shape"] = value->local_shape;
        json["bytes"] = value->bytes;
      }
      Json layouts = Json::array();
      for (const VersionId version : versions[id]) layouts.push_back(to_string(plan_.versions[version], plan_.mesh));
      json["versions"] = std::move(layouts);
      return json;
    });
  }

  /// An instruction's number; [number, k] for its result k > 0; the name for values given from outside.
  Json input_json(ValueId value) const {
    const Producer& producer = producer_[value];
    if (!producer.is_made) return program_.values[value].name;
    if (producer.result == 0) return producer.instruction;
    return Json::array({producer.instruction, producer.result});
  }

  Json instruction_json(std::size_t number) const {
    const Instruction& instruction = program_.instructions[number];
    Json json{{"id", number}};
    switch (instruction.kind) {
      case InstructionKind::kConstant:
        json["kind"] = "constant";
        break;
      case InstructionKind::kOperator:
        json["kind"] = instruction.is_phase ? "phase" : "operator";
        break;
      case InstructionKind::kCollective:
        json["kind"] = "collective";
        break;
      case InstructionKind::kHalo:
        json["kind"] = "halo";
        break;
      case InstructionKind::kSend:
        json["kind"] = "send";
        break;
    }
    const CollectiveStep& step = instruction.step;
    const bool is_collective = instruction.kind == InstructionKind::kCollective;
    if (is_collective) json["collective"] = to_string(step.kind);
    json["instance"] = instruction.name;
    json["operator"] = instruction.op ? Json(graph_.operators()[*instruction.op].name) : Json(nullptr);
    json["stage"] = to_string(instruction.pass);
    if (instruction.is_phase) {
      json["op"] = instruction.operation->type->name;
      json["strategy"] = strategy_json(*instruction.operation, instruction.strategy, "");
    }
    if (!is_computation(instruction)) {
      json["origin"] = {{"kind", kind_name(instruction.origin->kind)},
                        {"producer", instruction.origin->producer},
                        {"consumer", instruction.origin->consumer},
                        {"operand", instruction.origin->operand},
                        {"because", instruction.origin->because}};
    }
    Json in = Json::array(), out = Json::array();
    for (const ValueId input : instruction.inputs) in.push_back(input_json(input));
    for (const ValueId output : instruction.outputs) {
      const ProgramValue& value = program_.values[output];
      out.push_back({{"tensor", value.name}, {"layout", to_string(value.layout, plan_.mesh)}});
    }
    json["in"] = in;
    json["out"] = out;
    if (is_collective) {
      json["axes"] = axes_json(plan_.mesh, step.axes);
      json["from_dim"] = step.from_dim ? Json(*step.from_dim) : Json(nullptr);
      json["to_dim"] = step.to_dim ? Json(*step.to_dim) : Json(nullptr);
      // For many devices the groups are omitted: the axes say the same in less space.
      if (plan_.mesh.num_devices() <= 64) json["groups"] = plan_.mesh.groups(step.axes);
      const bool reduces = step.kind == CollectiveKind::kReduceScatter || step.kind == CollectiveKind::kAllReduce ||
                           step.kind == CollectiveKind::kToPartial;
      json["op"] = reduces ? Json(to_string(step.reduction)) : Json(nullptr);
      json["fusion"] = instruction.fusion;
      if (instruction.in_pieces) json["pieces"] = num_pieces(step.axes);
    }
    if (instruction.kind == InstructionKind::kHalo) {
      Json halos = Json::array();
      for (const Halo& halo : instruction.halo) {
        halos.push_back({{"dim", halo.dimension},
                         {"axes", axes_json(plan_.mesh, halo.axes)},
                         {"before", halo.before},
                         {"after", halo.after}});
      }
      json["halo"] = halos;
    }
    if (is_communication(instruction)) json["bytes"] = group_bytes(program_, instruction);
    json["local_shape"] =
        instruction.outputs.empty() ? Json::array() : Json(program_.values[instruction.outputs[0]].local_shape);
    json["start"] = to_seconds(spans_[number].begin);
    json["seconds"] = to_seconds(instruction.time);
    if (instruction.runs > 1) json["runs"] = instruction.runs;
    if (!path_.shares.empty() && path_.shares[number].time > 0)
      json["critical"] = to_seconds(path_.shares[number].time);
    json["worker"] = worker_of(program_, instruction);
    if (instruction.kind == InstructionKind::kSend) json["to_worker"] = result_worker(program_, instruction);
    return json;
  }

  /// parameter_broadcast: the broadcasts before the first step.
  Json startup() const {
    Json list = Json::array();
    for (const StartupBroadcast& broadcast : program_.broadcasts) {
      const ProgramValue& value = program_.values[program_.given[broadcast.given].value];
      list.push_back({{"collective", "broadcast"},
                      {"tensor", value.name},
                      {"axes", axes_json(plan_.mesh, broadcast.axes)},
                      {"bytes", value.bytes},
                      {"seconds", to_seconds(broadcast.time)}});
    }
    return {{"seconds", to_seconds(startup_time(program_))}, {"broadcasts", list}};
  }

  Json memory() const {
    const MemoryProfile& memory = plan_.memory;
    Json alive = Json::array(), profile = Json::array();
    for (const MemoryProfile::Alive& item : memory.alive_at_peak) {
      alive.push_back({{"tensor", program_.values[item.value].name}, {"bytes", item.bytes}});
    }
    for (std::size_t i = 0; i < memory.bytes.size(); ++i) {
      profile.push_back({to_seconds(spans_[i].begin), memory.bytes[i]});
    }
    return {{"peak_bytes", memory.peak},
            {"at", {{"id", memory.peak_instruction}, {"seconds", to_seconds(plan_.time_of_peak())}}},
            {"alive", alive},
            {"profile", profile}};
  }

  Json padding() const {
    Json dims = Json::object();
    for (const auto& [name, dim] : plan_.model->padded_dims) {
      dims[name] = {{"size", dim.real}, {"padded", dim.padded}};
    }
    const PaddingWaste waste = padding_waste(plan_);
    return {{"dims", dims}, {"peak_bytes", waste.at_peak}, {"mask_seconds", to_seconds(waste.masks)}};
  }

  static Json proof_json(const ProofRecord& proof) {
    Json checks = Json::array();
    for (const ProofRecord::Check& check : proof.checks) {
      checks.push_back({{"dtype", check.dtype},
                        {"steps", check.steps},
                        {"compared", check.compared},
                        {"largest_difference", check.largest_difference},
                        {"allowed", check.allowed},
                        {"result", check.equal ? "equal" : "different"}});
    }
    return {{"result", proof.equal ? "equal" : "different"},
            {"seed", proof.seed},
            {"dims", Json(proof.dims)},
            {"checks", checks}};
  }

  const Plan& plan_;
  const OperatorGraph& graph_;
  const ParallelProgram& program_;
  IdVector<OperatorId, Picoseconds> computation_;  // per step
  std::vector<OverlappedTimeline::Span> spans_;
  CriticalPath path_;
  IdVector<ValueId, Producer> producer_;
};

}  // namespace

std::string_view plan_schema_name() { return "shardplan.plan/1"; }

std::string plan_json(const Plan& plan, const ProofRecord* proof) { return PlanWriter(plan).run(proof); }

}  // namespace shardplan
