#include "report/plan/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "base/json_text.h"
#include "graph/weights.h"
#include "program/instruction_facts.h"
#include "report/metrics/padding_waste.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/uneven_cuts.h"
#include "report/plan/layout_reasons.h"
#include "report/text/layout_grid.h"
#include "report/text/strategy_table.h"
#include "report/text/strategy_text.h"
#include "report/text/text_table.h"

// The figures come from searches with the operator's strategy forced. The reason for an alternative's cost comes from
// its strategy compared with the chosen one: more repeated work, else a partial result that must be reduced, else the
// largest operand that needs another layout.

namespace shardplan {
namespace {

using Align = TextTable::Align;

constexpr std::size_t kMostAlternatives = 8;
constexpr std::size_t kMostWords = 38;   // characters of a strategy, and
constexpr std::size_t kMostReason = 28;  // of the reason: a line of 100 together with the figures

/// "norm_f [32, 1024, 768], wte.embedding_table [50304, 768]".
std::string tensors_text(const OperatorGraph& graph, const std::vector<TensorId>& tensors, bool with_names) {
  std::vector<std::string> texts;
  for (const TensorId id : tensors) {
    const GraphTensor& tensor = graph.tensor(id);
    texts.push_back(with_names ? fmt::format("{} {}", tensor.name, to_string(tensor.type.shape))
                               : to_string(tensor.type.shape));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// The layouts of operands or results under a strategy, or (with `local`) their shapes on one device.
template <class LayoutOf>
std::string sides_text(const std::vector<TensorType>& types, const DeviceMesh& mesh, bool local, LayoutOf layout_of) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const TensorLayout layout = layout_of(i);
    texts.push_back(local ? to_string(local_shape(layout, types[i].shape)) : to_string(layout, mesh));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string both_sides(const Plan& plan, OperatorId op, bool local) {
  const Operation& operation = plan.graph->operation(op);
  const Strategy& strategy = plan.strategies[op];
  return fmt::format("{} -> {}",
                     sides_text(operation.operands, plan.mesh, local,
                                [&](std::size_t i) { return operand_layout(operation, strategy, plan.mesh, i); }),
                     sides_text(operation.results, plan.mesh, local,
                                [&](std::size_t i) { return result_layout(operation, strategy, plan.mesh, i); }));
}

std::string time_text(const Plan& plan, OperatorId op) {
  Picoseconds forward = 0, backward = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    if (!instruction.op || instruction.kind != InstructionKind::kOperator) continue;
    if (*instruction.op == op) forward += instruction.time_of_step();
    if (plan.graph->operators()[*instruction.op].forward == op) backward += instruction.time_of_step();
  }
  std::string text = format_time(forward);
  if (backward > 0) text = fmt::format("forward {}, backward {}", text, format_time(backward));
  Bytes held = 0;
  const GraphOperator& named = plan.graph->operators()[op];
  const std::set<TensorId> results(named.results.begin(), named.results.end());
  for (const MemoryProfile::Alive& alive : plan.memory.alive_at_peak) {
    const auto& tensor = plan.program.values[alive.value].tensor;
    if (tensor && results.contains(*tensor)) held += alive.bytes;
  }
  if (held > 0) text += fmt::format("; its result holds {} at the peak", format_bytes(held));
  return text;
}

/// The collectives that an operator needs: those that bring its operands, complete its results, or move its results.
std::vector<const Instruction*> needed(const Plan& plan, OperatorId op) {
  const GraphOperator& named = plan.graph->operators()[op];
  std::set<TensorId> own(named.results.begin(), named.results.end());
  std::set<TensorId> read(named.operands.begin(), named.operands.end());
  std::vector<const Instruction*> list;
  for (const Instruction& instruction : plan.program.instructions) {
    if (!is_communication(instruction)) continue;
    const auto& tensor = plan.program.values[instruction.outputs[0]].tensor;
    const bool into = instruction.op == op;
    const bool out = tensor && own.contains(*tensor);
    const bool delivered = tensor && read.contains(*tensor) && !instruction.op;
    if (into || out || delivered) list.push_back(&instruction);
  }
  return list;
}

/// "layers.1.up.matmul takes [{}, {}]", "2 readers take [{}, {}]", "up becomes [{}, {}], kept for the backward pass".
std::string taken_text(const Plan& plan, const Instruction& instruction) {
  const std::string layout = to_string(instruction.step->after, plan.mesh);
  const Origin& origin = instruction.origin;
  if (!origin.consumer.empty()) return fmt::format("{} takes {}", origin.consumer, layout);
  const std::string because = origin.because;
  if (because.ends_with(" readers")) return fmt::format("{} take {}", because, layout);
  if (because.ends_with(" reader")) return fmt::format("{} takes {}", because, layout);
  const std::string& name = plan.program.values[instruction.outputs[0]].name;
  return fmt::format("{} becomes {}{}{}", name, layout, because.empty() ? "" : ", ", because);
}

std::string needs_text(const Plan& plan, OperatorId op) {
  std::string text;
  for (const Instruction* instruction : needed(plan, op)) {
    const ProgramValue& value = plan.program.values[instruction->outputs[0]];
    const bool is_halo = instruction->kind == InstructionKind::kHalo;
    const std::string what = is_halo ? "halo exchange"
                                     : fmt::format("{} {}", to_string(instruction->step->kind),
                                                   plan.mesh.to_string(instruction->step->axes));
    text += fmt::format("    {:<10} {} of {}, {}, {}\n", text.empty() ? "needs" : "", what, value.name,
                        format_bytes(group_bytes(plan.program, *instruction)), format_time(instruction->time));
    if (is_halo) continue;
    text += fmt::format("               {} comes as {}\n", value.name, to_string(instruction->step->before, plan.mesh));
    text += fmt::format("               {}\n", taken_text(plan, *instruction));
  }
  return text;
}

/// How many devices do the same part of the work.
std::int64_t num_repeats(const Plan& plan, const Strategy& strategy) {
  std::int64_t cut = num_pieces(strategy.partial);
  for (const std::vector<AxisRef>& axes : strategy.factors) cut *= num_pieces(axes);
  return plan.mesh.num_devices() / cut;
}

/// "+1.2", "-0.08", "+196".
std::string signed_text(double value, double unit_decimals) {
  const double magnitude = value < 0 ? -value : value;
  const int decimals = magnitude >= 99.95 ? 0 : static_cast<int>(unit_decimals);
  std::string text = fmt::format("{:+.{}f}", value, decimals);
  if (text.find_first_of("123456789") == std::string::npos) text.erase(0, 1);  // zero has no sign
  return text;
}

std::string ratio_change(const StepTime& chosen, const StepTime& other) {
  const auto a = ratio(chosen), b = ratio(other);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!a || !b || *a == kInfinity || *b == kInfinity) return ratio_text(other);
  return signed_text(*b - *a, 2);
}

}  // namespace

Explanation explain(const ModelPlanner& planner, const Plan& plan, OperatorId op, std::stop_token stop) {
  Explanation explanation;
  explanation.plan = &plan;
  explanation.op = op;
  std::vector<Strategy> strategies = planner.alternatives(op);
  std::erase_if(strategies, [&](const Strategy& other) { return sharded_alike(other, plan.strategies[op]); });
  if (strategies.empty()) return explanation;
  if (stop.stop_requested()) {
    explanation.is_complete = false;
    return explanation;
  }
  const auto found = planner.forced(plan, op, strategies, stop);
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    if (found[i]) explanation.alternatives.push_back({strategies[i], found[i]->time, found[i]->peak, found[i]->fits});
  }
  explanation.is_complete = !stop.stop_requested();
  return explanation;
}

std::vector<const Explanation::Alternative*> by_cost(const Explanation& explanation) {
  std::vector<const Explanation::Alternative*> list;
  for (const Explanation::Alternative& alternative : explanation.alternatives) list.push_back(&alternative);
  const Level level = explanation.plan->options.level;
  const auto key = [&](const Explanation::Alternative* alternative) {
    const StepTime& time = alternative->time;
    const bool is_by_step = level == Level::kSpeed;  // overlapped, as shown
    const std::int64_t first = is_by_step ? time.step() : value_at(level, time, alternative->peak).amount;
    return std::make_tuple(level == Level::kRatio && time.repeated > 0, first, time.step(), alternative->peak);
  };
  std::stable_sort(list.begin(), list.end(), [&](const auto* a, const auto* b) { return key(a) < key(b); });
  return list;
}

std::string alternative_reason(const Plan& plan, OperatorId op, const Strategy& strategy) {
  const Operation& operation = plan.graph->operation(op);
  const GraphOperator& named = plan.graph->operators()[op];
  const Strategy& chosen = plan.strategies[op];
  const std::int64_t repeats = num_repeats(plan, strategy);
  if (repeats > num_repeats(plan, chosen)) {
    return fmt::format("{}work done {} times", repeats == plan.mesh.num_devices() ? "all " : "", repeats);
  }
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    const TensorLayout layout = result_layout(operation, strategy, plan.mesh, i);
    if (layout.partial.empty() || !strategy.partial.empty()) continue;
    if (layout.partial == result_layout(operation, chosen, plan.mesh, i).partial) continue;  // so does the chosen one
    return fmt::format("adds up {}, {}", plan.graph->tensor(named.results[i]).name,
                       format_bytes(local_bytes(operation.results[i], layout)));
  }
  // The largest tensor that must change its layout. Stored ones are stored otherwise, which moves nothing.
  std::string moved, stored;
  Bytes most = 0, most_stored = 0;
  const auto compare = [&](TensorId id, const TensorType& type, const TensorLayout& before, const TensorLayout& after) {
    const GraphTensor& tensor = plan.graph->tensor(id);
    const bool is_stored =
        tensor.updates || plan.graph->tensor(behind_casts(*plan.graph, id)).kind != TensorKind::kResult;
    const Bytes bytes = local_bytes(type, after);
    Bytes& largest = is_stored ? most_stored : most;
    if (before == after || bytes <= largest) return;
    largest = bytes;
    const bool is_more = local_bytes(type, before) < bytes;
    std::string& words = is_stored ? stored : moved;
    words = is_stored
                ? fmt::format("{} {}{}", is_more ? "reads more of" : "stores", tensor.name, is_more ? "" : " otherwise")
                : fmt::format("{} {}", is_more ? "gathers" : "moves", tensor.name);
  };
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    compare(named.operands[i], operation.operands[i], operand_layout(operation, chosen, plan.mesh, i),
            operand_layout(operation, strategy, plan.mesh, i));
  }
  if (!moved.empty()) return moved;
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    const TensorLayout before = result_layout(operation, chosen, plan.mesh, i);
    const TensorLayout after = result_layout(operation, strategy, plan.mesh, i);
    if (before.partial == after.partial) compare(named.results[i], operation.results[i], before, after);
  }
  return moved.empty() ? stored : moved;
}

std::string decided_by(const Plan& plan, OperatorId op) {
  const std::string_view origin = strategy_origin(plan, op);
  if (origin == "follows") return "follows " + followed_name(plan, op);
  return origin == "user"      ? "set by the user"
         : origin == "default" ? "data parallel, by the mode"
                               : "chosen by the search";
}

std::string alternatives_table(const Explanation& explanation, std::size_t most, std::size_t indent, bool colour) {
  if (explanation.alternatives.empty()) return {};
  const Plan& plan = *explanation.plan;
  const Operation& operation = plan.graph->operation(explanation.op);
  const auto list = by_cost(explanation);
  Picoseconds longest = 0;
  Bytes largest = 0;
  for (std::size_t i = 0; i < std::min(list.size(), most); ++i) {
    longest = std::max(longest, std::abs(list[i]->time.step() - plan.time.step()));
    largest = std::max(largest, std::abs(list[i]->peak - plan.memory.peak));
  }
  const ColumnUnit time = time_unit(longest > 0 ? longest : plan.time.step());
  const ColumnUnit bytes = bytes_unit(largest > 0 ? largest : plan.memory.peak);
  // Texts that are too long for the width end in dots, names begin with them; --json has them in full.
  const auto shortened = [](const std::string& words, std::size_t width) {
    return words.size() <= width ? words : words.substr(0, width - 3) + "...";
  };
  const auto with_short_name = [&](const std::string& words) {
    const std::size_t name = words.rfind(' ') + 1, over = words.size() - std::min(words.size(), kMostReason);
    if (over == 0 || name + over + 3 >= words.size()) return shortened(words, kMostReason);
    const std::size_t cut = name + over + 3, dot = words.find('.', cut - 1);
    return words.substr(0, name) + "..." + words.substr(dot == std::string::npos ? cut : dot + 1);
  };
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  const bool is_by_sum = plan.options.level == Level::kSpeed && plan.is_overlapped;
  table.add({fmt::format("alternative (the rest {})", is_by_sum ? "adapted" : "searched again"),
             fmt::format("step, {}", time.name), "ratio", fmt::format("peak, {}", bytes.name), "because"});
  for (std::size_t i = 0; i < std::min(list.size(), most); ++i) {
    const Explanation::Alternative& alternative = *list[i];
    const std::string because =
        alternative.fits ? alternative_reason(plan, explanation.op, alternative.strategy) : "does not fit";
    table.add({shortened(strategy_words(operation, alternative.strategy, plan.mesh), kMostWords),
               signed_text(static_cast<double>(alternative.time.step() - plan.time.step()) / time.size, 1),
               ratio_change(plan.time, alternative.time),
               signed_text(static_cast<double>(alternative.peak - plan.memory.peak) / bytes.size, 1),
               with_short_name(because)});
  }
  return table.to_string(indent, colour);
}

std::string no_alternatives(const Explanation& explanation) {
  return explanation.is_complete ? "no alternatives" : "stopped before its alternatives were searched";
}

std::string explain_report(const Explanation& explanation, const ExplainOptions& options) {
  const Plan& plan = *explanation.plan;
  const OperatorGraph& graph = *plan.graph;
  const GraphOperator& op = graph.operators()[explanation.op];
  const Operation& operation = graph.operation(explanation.op);
  const Strategy& strategy = plan.strategies[explanation.op];

  std::string text =
      fmt::format("{}: {}({}) -> {}\n", styled(op.name, TextStyle::kBold, options.colour), operation.type->name,
                  tensors_text(graph, op.operands, true), tensors_text(graph, op.results, false));
  if (op.place.line > 0) text += fmt::format("{}:{}:{}; ", op.place.file, op.place.line, op.place.column);
  text += fmt::format("{}\n", decided_by(plan, explanation.op));
  for (const std::string& reason : layout_reasons(plan, explanation.op)) text += fmt::format("  {}\n", reason);
  text += '\n';
  text += fmt::format("  chosen       {}", strategy_words(operation, strategy, plan.mesh));
  const auto in = input_tuples(operation, strategy, plan.mesh);
  const auto out = output_tuples(operation, strategy, plan.mesh);
  if (in && out) text += fmt::format("       as tuples {} -> {}", tuple_text(*in), tuple_text(*out));
  text += fmt::format("\n    layouts    {}\n    local      {}\n    time       {}\n",
                      both_sides(plan, explanation.op, false), both_sides(plan, explanation.op, true),
                      time_text(plan, explanation.op));
  for (const UnevenCut& cut : uneven_cuts(plan, explanation.op)) {
    text += fmt::format("    uneven     {}\n", to_string(cut));
  }
  for (const std::string& line : padded_dimensions(plan, explanation.op)) {
    text += fmt::format("    padded     {}\n", line);
  }
  for (const std::string& line : cuts_that_do_not_fit(plan, explanation.op)) {
    text += fmt::format("    not cut    {}\n", line);
  }
  text += needs_text(plan, explanation.op);
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    const Shape& shape = operation.results[i].shape;
    const std::string grid = layout_grid(result_layout(operation, strategy, plan.mesh, i), plan.mesh, shape, 15);
    if (grid.empty()) continue;
    text += fmt::format("    who holds  {} {}\n{}", graph.tensor(op.results[i]).name, to_string(shape), grid);
  }
  if (explanation.alternatives.empty()) return text + fmt::format("\n  {}\n", no_alternatives(explanation));

  const std::size_t count = explanation.alternatives.size();
  const std::size_t shown = options.all || count == kMostAlternatives + 1 ? count : kMostAlternatives;
  text += '\n' + alternatives_table(explanation, shown, 2, options.colour);
  if (shown < count) text += fmt::format("  {} more cost more than these (--all)\n", count - shown);
  if (plan.options.level == Level::kSpeed && plan.is_overlapped) {
    text += "  the rest has the least sum of times, or is near the plan; a search with --set may find less\n";
  }
  if (!explanation.is_complete) text += "  stopped early: there may be more\n";
  return text;
}

std::string explain_json(const Explanation& explanation) {
  const Plan& plan = *explanation.plan;
  const Operation& operation = plan.graph->operation(explanation.op);
  const auto words = [&](const Strategy& strategy) { return strategy_words(operation, strategy, plan.mesh); };
  Json alternatives = Json::array();
  for (const Explanation::Alternative* alternative : by_cost(explanation)) {
    alternatives.push_back({{"strategy", words(alternative->strategy)},
                            {"seconds", to_seconds(alternative->time.step())},
                            {"communication_seconds", to_seconds(alternative->time.communication)},
                            {"peak_bytes", alternative->peak},
                            {"fits", alternative->fits},
                            {"because", alternative_reason(plan, explanation.op, alternative->strategy)}});
  }
  Json needs = Json::array();
  for (const Instruction* instruction : needed(plan, explanation.op)) {
    const bool is_halo = instruction->kind == InstructionKind::kHalo;
    needs.push_back({{"collective", is_halo ? Json("halo") : Json(to_string(instruction->step->kind))},
                     {"tensor", plan.program.values[instruction->outputs[0]].name},
                     {"bytes", group_bytes(plan.program, *instruction)},
                     {"seconds", to_seconds(instruction->time)}});
  }
  Json document;
  document["schema"] = "shardplan.explanation/1";
  document["operator"] = plan.graph->operators()[explanation.op].name;
  document["op"] = operation.type->name;
  document["complete"] = explanation.is_complete;
  document["origin"] = strategy_origin(plan, explanation.op);
  if (const std::string followed = followed_name(plan, explanation.op); !followed.empty()) {
    document["follows"] = followed;
  }
  const std::vector<std::string> reasons = layout_reasons(plan, explanation.op);
  if (!reasons.empty()) document["decided_by_keys"] = reasons;
  document["chosen"] = words(plan.strategies[explanation.op]);
  document["layouts"] = both_sides(plan, explanation.op, false);
  document["local_shapes"] = both_sides(plan, explanation.op, true);
  if (const auto lines = cuts_that_do_not_fit(plan, explanation.op); !lines.empty()) document["not_cut"] = Json(lines);
  document["seconds"] = to_seconds(plan.time.step());
  document["peak_bytes"] = plan.memory.peak;
  document["needs"] = needs;
  document["alternatives"] = alternatives;
  return json_document(document);
}

}  // namespace shardplan
