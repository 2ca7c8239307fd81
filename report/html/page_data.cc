#include "report/html/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/folded_names.h"
#include "program/instruction_facts.h"
#include "program/overlapped_timeline.h"
#include "report/metrics/parallelism_patterns.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/step_path.h"
#include "report/metrics/step_shares.h"
#include "report/plan/loop_runs.h"
#include "report/text/layout_grid.h"
#include "report/text/strategy_text.h"

// The page gets data, not markup: rows of operators folded by equal strategy, edges between rows, timeline items by
// lane, memory points and tables, as one JSON object with short keys that html/report.js reads. Lists that grow with
// the number of layers are folded or limited here, so that the page of a model with thousands of operators stays small.

namespace shardplan {
namespace {

constexpr std::size_t kMostMemoryPoints = 4000;
constexpr std::size_t kMostAlive = 300;
constexpr Picoseconds kNanosecond = 1000;
constexpr char kComputeLane[] = "compute";

std::string_view kind_text(TensorKind kind) {
  switch (kind) {
    case TensorKind::kInput:
      return "input";
    case TensorKind::kParameter:
      return "parameter";
    case TensorKind::kState:
      return "optimizer state";
    case TensorKind::kConstant:
      return "constant";
    case TensorKind::kResult:
      break;
  }
  return "result";
}

/// Operators as rows of the page: one row for all copies with the same sharding.
class PageData {
 public:
  PageData(const Plan& plan, const CriticalPath& path, const std::vector<ExplainedDecision>& decisions)
      : plan_(plan), graph_(*plan.graph), path_(path) {
    add_operators();
    add_edges();
    add_instructions();
    add_alternatives(decisions);
  }

  Json operators() {
    Json list = Json::array();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Json& row = rows_[i];
      row["c"] = copies_[i];
      row["ps"] = computation_[i];
      row["cm"] = communication_[i];
      list.push_back(row);
    }
    return list;
  }
  Json edges() const { return edges_; }
  Json lanes() const { return lanes_; }
  Json timeline_items() const { return items_; }
  Json collectives() {
    Json list = Json::array();
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      comms_[i]["n"] = comm_sums_[i].count;
      comms_[i]["b"] = comm_sums_[i].bytes;
      comms_[i]["t"] = comm_sums_[i].time;
      list.push_back(comms_[i]);
    }
    return list;
  }

 private:
  struct CollectiveSum {
    std::int64_t count = 0;
    Bytes bytes = 0;
    Picoseconds time = 0;
  };

  /// Tensors with shape, layout and one device's shape.
  Json sides(OperatorId op, bool of_results) const {
    const Operation& operation = graph_.operation(op);
    const std::vector<TensorType>& types = of_results ? operation.results : operation.operands;
    const std::vector<TensorId>& tensors =
        of_results ? graph_.operators()[op].results : graph_.operators()[op].operands;
    Json list = Json::array();
    for (std::size_t i = 0; i < types.size(); ++i) {
      const TensorLayout layout = of_results ? result_layout(operation, plan_.strategies[op], plan_.mesh, i)
                                             : operand_layout(operation, plan_.strategies[op], plan_.mesh, i);
      list.push_back({folded_name(graph_.tensor(tensors[i]).name), to_string(types[i].shape),
                      to_string(layout, plan_.mesh), to_string(local_shape(layout, types[i].shape))});
    }
    return list;
  }

  void add_operators() {
    std::map<std::string, std::size_t> position;
    std::map<std::string, std::size_t> variants;  // rows with the same folded name
    for (const OperatorId op : graph_.operators().ids()) {
      const GraphOperator& named = graph_.operators()[op];
      const Operation& operation = graph_.operation(op);
      const std::string folded = folded_name(named.name);
      const std::string words = strategy_words(operation, plan_.strategies[op], plan_.mesh);
      Json out = sides(op, true);
      const auto [found, is_new] = position.try_emplace(folded + '\n' + words + '\n' + out.dump(), rows_.size());
      row_of_.push_back(found->second);
      if (!is_new) {
        ++copies_[found->second];
        continue;
      }
      const std::size_t variant = ++variants[folded];
      Json row;
      row["n"] = variant == 1 ? folded : fmt::format("{} (sharded differently, {})", folded, variant);
      row["t"] = operation.type->name;
      row["p"] = static_cast<int>(named.pass);
      row["b"] = folded_block(graph_, op);
      row["s"] = words;
      row["by"] = decided_by(plan_, op);
      row["full"] = named.name;
      row["in"] = sides(op, false);
      row["out"] = std::move(out);
      if (named.forward) row["f"] = row_of_[*named.forward];
      if (named.place.line > 0) row["at"] = fmt::format("{}:{}", named.place.file, named.place.line);
      if (!operation.results.empty()) {
        const std::string grid = layout_grid(result_layout(operation, plan_.strategies[op], plan_.mesh, 0), plan_.mesh,
                                             operation.results[0].shape, 0);
        if (!grid.empty()) row["g"] = grid;
      }
      rows_.push_back(std::move(row));
      copies_.push_back(1);
    }
    computation_.resize(rows_.size());
    communication_.resize(rows_.size());
  }

  void add_edges() {
    std::set<std::pair<std::size_t, std::size_t>> seen;
    for (const OperatorId op : graph_.operators().ids()) {
      if (graph_.operators()[op].pass != Pass::kForward) continue;
      for (const TensorId operand : graph_.operators()[op].operands) {
        const std::optional<OperatorId> producer = graph_.tensor(operand).producer;
        if (!producer || row_of_[*producer] == row_of_[op]) continue;
        if (!seen.emplace(row_of_[*producer], row_of_[op]).second) continue;
        edges_.push_back({row_of_[*producer], row_of_[op], folded_name(graph_.tensor(operand).name)});
      }
    }
  }

  std::size_t lane_of(const std::string& name) {
    const auto [found, is_new] = lane_position_.try_emplace(name, lanes_.size());
    if (is_new) lanes_.push_back(name);
    return found->second;
  }

  std::size_t lane_of_worker(int worker) { return lane_of(fmt::format("worker {}", worker)); }

  /// With several workers, one lane for all that a worker does.
  std::size_t lane_of(const Instruction& instruction) {
    if (plan_.program.workers > 1) return lane_of_worker(worker_of(plan_.program, instruction));
    if (!is_communication(instruction)) return lane_of(kComputeLane);
    const std::vector<AxisRef> axes = axes_of(instruction);
    return lane_of(axes.empty() ? "links" : plan_.mesh.axes()[axes.front().axis].name);
  }

  std::vector<AxisRef> axes_of(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kHalo) return instruction.step->axes;
    std::vector<AxisRef> axes;
    for (const Halo& halo : instruction.halo) axes.insert(axes.end(), halo.axes.begin(), halo.axes.end());
    return axes;
  }

  std::size_t comm_of(const Instruction& instruction, const std::optional<OperatorId>& op) {
    const bool is_send = instruction.kind == InstructionKind::kSend;
    const bool is_halo = instruction.kind == InstructionKind::kHalo;
    const std::string kind = is_send   ? "send"
                             : is_halo ? "halo exchange"
                                       : std::string(to_string(instruction.step->kind));
    const std::string axes =
        is_send ? workers_text(plan_.program, instruction) : plan_.mesh.to_string(axes_of(instruction));
    const std::string tensor = folded_name(plan_.program.values[instruction.outputs[0]].name);
    const std::string row = op ? std::to_string(row_of_[*op]) : "";
    const auto [found, is_new] = comm_position_.try_emplace(kind + axes + '\n' + tensor + '\n' + row, comms_.size());
    if (is_new) {
      Json comm{{"k", kind}, {"a", axes}, {"w", tensor}};
      if (!is_halo && !is_send) {
        comm["x"] = to_string(instruction.step->before, plan_.mesh);
        comm["y"] = to_string(instruction.step->after, plan_.mesh);
      }
      if (!instruction.origin->because.empty()) comm["why"] = instruction.origin->because;
      if (op) comm["to"] = row_of_[*op];
      comms_.push_back(std::move(comm));
      comm_sums_.emplace_back();
    }
    return found->second;
  }

  void add_instructions() {
    const std::vector<OverlappedTimeline::Span> spans = plan_.spans();
    const int workers = plan_.program.workers;
    for (int worker = 0; workers > 1 && worker < workers; ++worker) lane_of_worker(worker);
    if (workers == 1) lane_of(kComputeLane);
    std::size_t first = 0;  // of the bucket
    for (std::size_t i = 0; i < plan_.program.instructions.size(); ++i) {
      const Instruction& instruction = plan_.program.instructions[i];
      const std::optional<OperatorId> op = spender(plan_, instruction);
      const bool is_comm = is_communication(instruction);
      if (i >= end_of_bucket(plan_.program, first)) first = i;
      const bool is_critical = !path_.shares.empty() && path_.shares[first].time > 0;
      if (op) (is_comm ? communication_ : computation_)[row_of_[*op]] += instruction.time_of_step();
      std::int64_t ref = 0;
      if (is_comm) {
        const std::size_t comm = comm_of(instruction, op);
        ref = -1 - static_cast<std::int64_t>(comm);
        CollectiveSum& sum = comm_sums_[comm];
        sum.count += instruction.runs;
        sum.bytes += instruction.runs * group_bytes(plan_.program, instruction);
        sum.time += instruction.time_of_step();
      } else if (op) {
        ref = static_cast<std::int64_t>(row_of_[*op]);
      }
      // Each of several collectives in one bucket takes the bucket's time.
      const Picoseconds length = spans[i].end - spans[i].begin;
      if (length < kNanosecond || !(is_comm || op)) continue;
      const auto add_in = [&](std::size_t lane) {
        items_.push_back({lane, spans[i].begin / kNanosecond, length / kNanosecond, ref});
        if (is_critical) items_.back().push_back(1);
      };
      add_in(lane_of(instruction));
      if (instruction.kind == InstructionKind::kSend) {
        add_in(lane_of_worker(result_worker(plan_.program, instruction)));
      }
    }
  }

  void add_alternatives(const std::vector<ExplainedDecision>& decisions) {
    for (const ExplainedDecision& explained : decisions) {
      Json list = Json::array();
      for (const Explanation::Alternative* alternative : by_cost(explained.explanation)) {
        list.push_back({strategy_words(graph_.operation(explained.decision.op), alternative->strategy, plan_.mesh),
                        alternative->time.step() - plan_.time.step(), alternative->peak - plan_.memory.peak,
                        alternative->fits ? alternative_reason(plan_, explained.decision.op, alternative->strategy)
                                          : "does not fit"});
      }
      rows_[row_of_[explained.decision.op]]["alt"] = std::move(list);
    }
  }

  const Plan& plan_;
  const OperatorGraph& graph_;
  const CriticalPath& path_;
  std::vector<Json> rows_;
  std::vector<std::size_t> copies_;
  std::vector<Picoseconds> computation_, communication_;
  IdVector<OperatorId, std::size_t> row_of_;
  Json edges_ = Json::array(), lanes_ = Json::array(), items_ = Json::array();
  std::map<std::string, std::size_t> lane_position_, comm_position_;
  std::vector<Json> comms_;
  std::vector<CollectiveSum> comm_sums_;
};

/// [class, forward, backward, update, slowed] in picoseconds of a step.
Json path_rows(const Plan& plan, const CriticalPath& path) {
  Json rows = Json::array();
  for (const PathClass& one : path_classes(plan, path)) {
    rows.push_back({one.name, one.passes[0], one.passes[1], one.passes[2], one.slowed});
  }
  return rows;
}

/// With micro-batches: the end of the loop's first run, and of its last run, of all workers or of one; null otherwise.
Json loop_span(const Plan& plan, const std::vector<OverlappedTimeline::Span>& spans, std::optional<int> worker = {}) {
  const std::optional<OtherRuns> others = other_runs(plan, spans, worker);
  return others ? Json{others->begin / kNanosecond, others->end / kNanosecond} : Json();
}

/// Points of the memory curve: [time, bytes], at most `kMostMemoryPoints`, the largest of each neighbourhood.
Json memory_points(const Plan& plan) {
  const std::vector<Picoseconds> times = plan.counted_from();
  const std::vector<Bytes>& bytes = plan.memory.bytes;
  const std::size_t stride = bytes.size() / kMostMemoryPoints + 1;
  Json points = Json::array();
  for (std::size_t begin = 0; begin < bytes.size(); begin += stride) {
    std::size_t most = begin;
    for (std::size_t i = begin; i < std::min(begin + stride, bytes.size()); ++i) {
      if (bytes[i] > bytes[most]) most = i;
    }
    points.push_back({times[most] / kNanosecond, bytes[most]});
  }
  return points;
}

Json alive_at_peak(const Plan& plan) {
  struct Sum {
    Json row;
    Bytes bytes = 0;
    std::size_t count = 0;
  };
  std::vector<Sum> sums;
  std::map<std::string, std::size_t> position;
  for (const MemoryProfile::Alive& alive : plan.memory.alive_at_peak) {
    const ProgramValue& value = plan.program.values[alive.value];
    const std::string name = folded_name(value.name);
    const std::string layout = to_string(value.layout, plan.mesh);
    const std::string_view kind = value.tensor ? kind_text(plan.graph->tensor(*value.tensor).kind) : "buffer";
    const auto [found, is_new] = position.try_emplace(name + '\n' + layout + std::string(kind), sums.size());
    if (is_new) sums.push_back({{name, kind, layout}, 0, 0});
    sums[found->second].bytes += alive.bytes;
    ++sums[found->second].count;
  }
  std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.bytes > b.bytes; });
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(sums.size(), kMostAlive); ++i) {
    sums[i].row.push_back(sums[i].bytes);
    sums[i].row.push_back(sums[i].count);
    rows.push_back(std::move(sums[i].row));
  }
  return rows;
}

Json stored_tensors(const Plan& plan) {
  struct Sum {
    Json row;
    Bytes local = 0, whole = 0;
    std::size_t count = 0;
  };
  std::vector<Sum> sums;
  std::map<std::string, std::size_t> position;
  for (const Binding& binding : plan.program.given) {
    const ProgramValue& value = plan.program.values[binding.value];
    const GraphTensor& tensor = plan.graph->tensor(binding.tensor);
    const std::string name = folded_name(tensor.name);
    const std::string layout = to_string(value.layout, plan.mesh);
    const auto [found, is_new] = position.try_emplace(name + '\n' + layout, sums.size());
    if (is_new) sums.push_back({{name, kind_text(tensor.kind), to_string(tensor.type.shape), layout}, 0, 0, 0});
    Sum& sum = sums[found->second];
    sum.local += value.bytes;
    sum.whole += num_elements(value.type.shape) * element_bytes(value.type.dtype);
    ++sum.count;
  }
  Json rows = Json::array();
  for (Sum& sum : sums) {
    sum.row.push_back(sum.local);
    sum.row.push_back(sum.whole);
    sum.row.push_back(sum.count);
    rows.push_back(std::move(sum.row));
  }
  return rows;
}

}  // namespace

Json page_data(const Plan& plan, const std::string& name, const std::vector<ExplainedDecision>& decisions) {
  const CriticalPath path = step_path(plan);
  PageData data(plan, path, decisions);
  Json axes = Json::array();
  for (const MeshAxis& axis : plan.mesh.axes()) axes.push_back({axis.name, axis.size});
  const std::optional<double> plan_gap = open_gap(plan);
  Json document;
  document["name"] = name;
  document["level"] = fmt::format("level {} ({})", number_of(plan.options.level), to_string(plan.options.level));
  document["search"] = plan.options.search;
  document["seed"] = plan.options.seed;
  document["axes"] = axes;
  document["short"] = parallelism_patterns(plan);
  document["step"] = plan.time.step();
  document["compute"] = plan.time.computation;
  document["communication"] = plan.time.communication;
  document["exposed"] = plan.time.exposed;
  document["ratio"] = ratio_text(plan.time);
  document["gap"] = plan_gap ? gap_text(plan_gap) : "";
  document["peak"] = plan.memory.peak;
  const std::vector<OverlappedTimeline::Span> spans = plan.spans();
  document["peak_at"] = spans.empty() ? 0 : plan.counted_from()[plan.memory.peak_instruction] / kNanosecond;
  document["usable"] = plan.usable;
  document["micro_batches"] = plan.program.micro_batches;
  document["ops"] = data.operators();
  document["edges"] = data.edges();
  document["comms"] = data.collectives();
  document["lanes"] = data.lanes();
  document["loop"] = loop_span(plan, spans);
  if (plan.program.workers > 1) {
    document["loops"] = Json::array();
    for (int worker = 0; worker < plan.program.workers; ++worker) {
      document["loops"].push_back(loop_span(plan, spans, worker));
    }
  }
  document["timeline"] = data.timeline_items();
  document["path"] = path_rows(plan, path);
  document["memory"] = memory_points(plan);
  document["alive"] = alive_at_peak(plan);
  document["stored"] = stored_tensors(plan);
  return document;
}

}  // namespace shardplan
