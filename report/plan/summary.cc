#include "report/plan/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "graph/folded_names.h"
#include "program/instruction_facts.h"
#include "program/startup_broadcasts.h"
#include "program/timeline.h"
#include "report/metrics/collective_groups.h"
#include "report/metrics/padding_waste.h"
#include "report/metrics/parallelism_patterns.h"
#include "report/metrics/peak_holders.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/step_path.h"
#include "report/metrics/uneven_cuts.h"
#include "report/plan/bound_lines.h"
#include "report/plan/fusion_report.h"
#include "report/plan/workers_report.h"
#include "report/text/origin_words.h"
#include "report/text/text_table.h"

// One function per line or table, in the order of the page; `summary_report` joins them. Figures come from
// report/metrics, texts from report/text; this file only fits them to the terminal's width: how many rows are shown and
// what is shortened.

namespace shardplan {
namespace {

using Align = TextTable::Align;

constexpr std::size_t kMostBlocks = 12;
/// Repeated work of data parallelism is mentioned from this part of its computation on.
constexpr Picoseconds kPartsWorthSaying = 50;
constexpr std::size_t kMostLayoutLines = 16;  // if their layouts take several lines each
constexpr std::size_t kMostCollectives = 5;
constexpr std::size_t kMostHolders = 6;
constexpr std::size_t kMostClasses = 4;  // of the critical path

// --- the first lines -------------------------------------------------------------------------------------------------

std::string fits_line(const Plan& plan, bool colour) {
  const ColumnUnit usable = bytes_unit(plan.usable);
  const std::string limit = format_bytes(plan.usable);
  const bool same_unit = limit.ends_with(usable.name) && static_cast<double>(plan.memory.peak) >= 0.1 * usable.size;
  const std::string peak = same_unit ? fmt::format("{:.1f}", static_cast<double>(plan.memory.peak) / usable.size)
                                     : format_bytes(plan.memory.peak);
  return fmt::format("  fits        {} of {} per device\n", styled(peak, TextStyle::kBold, colour), limit);
}

std::string step_line(const Plan& plan) {
  std::string beside;
  const bool is_one_device = plan.program.workers == 1 && plan.mesh.num_devices() == 1;  // as with data parallelism
  for (const Baseline& baseline : plan.baselines) {
    const bool is_one_worker = baseline.name == "one_worker";
    if (is_one_device || (baseline.name != "data_parallel" && !is_one_worker)) continue;
    const Picoseconds repeated = is_one_worker ? 0 : baseline.time.repeated;
    beside += fmt::format("{} would take {}{} and {}{}", is_one_worker ? "one worker" : "at this level data parallel",
                          format_time(baseline.time.step()),
                          repeated > baseline.time.computation / kPartsWorthSaying
                              ? fmt::format(" ({} of it repeated)", format_time(repeated))
                              : "",
                          format_bytes(baseline.peak), baseline.fits ? "" : ", which does not fit");
  }
  return figure_line("step", format_time(plan.time.step()), beside);
}

/// Products that several devices compute alike, if they take long.
std::string repeated_line(const Plan& plan) {
  const bool is_one_device = plan.program.workers == 1 && plan.mesh.num_devices() == 1;
  if (is_one_device || plan.time.repeated <= plan.time.computation / kPartsWorthSaying) return {};
  return figure_line("repeated", format_time(plan.time.repeated),
                     fmt::format("of {} computation: products that several devices repeat, not divide",
                                 format_time(plan.time.computation)));
}

/// How much of the communication is hidden behind computation.
std::string overlap_line(const Plan& plan) {
  if (!plan.is_overlapped || plan.time.communication == 0) return {};
  const bool is_bounded = plan.overlapped_bound && plan.bound.amount > 0;
  const std::string least = is_bounded ? fmt::format(" (in any plan at least {})", to_string(plan.bound)) : "";
  const bool is_joined = !plan.program.buckets.empty();
  return figure_line(
      "overlap", format_time(plan.time.exposed),
      fmt::format("of {} communication exposed{}; without overlap{} {}{}",
                  format_time(joined_communication(plan.program)),
                  is_joined ? fmt::format(" ({} without buckets)", format_time(plan.time.communication)) : "",
                  is_joined ? " and buckets" : "", format_time(plan.time.additive()), least));
}

/// Percentage of the step: "62", "9.3", "0.4".
std::string percent(const Plan& plan, Picoseconds part) {
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(plan.time.step());
  return fmt::format("{:.{}f}", share, share < 9.95 ? 1 : 0);
}

/// The critical path in one line, for plans that communicate, as for the overlap.
std::string path_line(const Plan& plan, const std::vector<PathClass>& classes) {
  if (classes.empty() || plan.time.communication == 0) return {};
  constexpr char kNoBreak = '\t';  // between a name, its number and the unit
  std::string words = "path:";
  Picoseconds others = 0, slowed = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    slowed += classes[i].slowed;
    const bool is_something = classes[i].time() * 2000 >= plan.time.step();  // would not print as 0.0 %
    if (is_something && (i < kMostClasses || classes.size() == kMostClasses + 1)) {
      words += fmt::format("{} {}{}{}{}%", i == 0 ? "" : ",", classes[i].name, kNoBreak,
                           percent(plan, classes[i].time()), kNoBreak);
    } else {
      others += classes[i].time();
    }
  }
  if (others * 2000 >= plan.time.step())
    words += fmt::format(", others{}{}{}%", kNoBreak, percent(plan, others), kNoBreak);
  if (slowed * 200 >= plan.time.step()) {
    words += fmt::format("; {}{}% is mutual slowdown", percent(plan, slowed), kNoBreak);
  }
  std::string line = wrapped_line("critical", words);
  std::replace(line.begin(), line.end(), kNoBreak, ' ');
  return line;
}

/// All classes of the critical path.
std::string path_table(const Plan& plan, const std::vector<PathClass>& classes) {
  if (classes.empty()) return {};
  const ColumnUnit unit = time_unit(classes[0].time());
  TextTable table(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.add({fmt::format("critical path, {}", unit.name), "forward", "backward", "update", "step", "%", "slowed by"});
  for (const PathClass& one : classes) {
    std::vector<TextTable::Cell> row{one.name};
    for (const Picoseconds time : one.passes) row.push_back(time == 0 ? "" : unit.format(time));
    row.push_back(unit.format(one.time()));
    row.push_back(percent(plan, one.time()));
    row.push_back(one.slowed == 0 ? "" : unit.format(one.slowed));
    table.add(std::move(row));
  }
  return '\n' + table.to_string(2);
}

/// The broadcasts before the first step (parameter_broadcast).
std::string startup_line(const Plan& plan) {
  const std::size_t count = plan.program.broadcasts.size();
  if (count == 0) return {};
  return figure_line("start-up", format_time(startup_time(plan.program)),
                     fmt::format("{} broadcast{} of parameters and states, {} per device, once", count,
                                 count == 1 ? "" : "s", format_bytes(startup_bytes(plan.program))));
}

/// Parameters of which every device has its own, and statistics of its part of the batch; the proof's single device has
/// them too.
std::string per_device_line(const Plan& plan) {
  std::size_t parameters = 0, statistics = 0;
  for (const GraphTensor& tensor : plan.graph->tensors()) {
    if (tensor.layerwise_parallel) ++(tensor.requires_grad ? parameters : statistics);
  }
  std::vector<std::string> what;
  if (parameters > 0) what.push_back(fmt::format("{} parameter{}", parameters, parameters == 1 ? "" : "s"));
  if (statistics > 0) what.push_back("batch statistics");
  if (what.empty()) return {};
  return wrapped_line("per device",
                      fmt::format("{} separate on each device, not averaged; the proof's one device has all",
                                  fmt::join(what, " and ")));
}

/// MindSpore's cost model on the forward strategies that it chose.
std::string mindspore_line(const Plan& plan) {
  if (!plan.mindspore) return {};
  const MindSporeValue& cost = plan.mindspore->cost;
  const MindSporeValue& bound = plan.mindspore->bound;
  const auto [size, unit] = weighted_unit(cost);
  const std::string verdict = cost == bound ? "optimal: no forward strategies have less"
                                            : fmt::format("no forward strategies have less than {}",
                                                          three_digits(bound.weighted_bytes() / size));
  return figure_line("mindspore", fmt::format("{} {}", three_digits(cost.weighted_bytes() / size), unit),
                     "weighted bytes of its cost model; " + verdict);
}

// --- mesh: auto ---------------------------------------------------------------------------------------------------------

/// The result for each mesh shape.
std::string shapes_table(const Plan& plan) {
  if (plan.tried_shapes.empty()) return {};
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  table.add({"mesh: auto", "communication", "step", "peak", ""});
  for (const TriedShape& shape : plan.tried_shapes) {
    const bool fits = is_found(shape.status);
    table.add({plan.mesh.to_string(shape.pieces), fits ? format_time(shape.time.communication) : "",
               fits ? format_time(shape.time.step()) : "", fits ? format_bytes(shape.peak) : "",
               !fits                                 ? "no plan fits"
               : shape.pieces == plan.options.pieces ? "taken"
                                                     : ""});
  }
  return table.to_string(2);
}

// --- layouts ---------------------------------------------------------------------------------------------------------

/// For each tensor the first value in which it is whole, else the last partial one; null if no value holds it.
IdVector<TensorId, const ProgramValue*> produced_values(const Plan& plan) {
  IdVector<TensorId, const ProgramValue*> produced(plan.graph->tensors().size(), nullptr);
  for (const ProgramValue& value : plan.program.values) {
    if (!value.tensor) continue;
    const ProgramValue*& found = produced[*value.tensor];
    if (found == nullptr || !found->layout->partial.empty()) found = &value;
  }
  return produced;
}

/// The layouts of a block's parameters, each with the bytes that have it.
class LayoutTexts {
 public:
  void add(const std::string& text, Bytes bytes) {
    const auto found = std::ranges::find(texts_, text, &Text::first);
    if (found == texts_.end()) {
      texts_.emplace_back(text, bytes);
    } else {
      found->second += bytes;
    }
  }
  /// The two with the most bytes, and "..." if there are more.
  std::string few() const {
    std::vector<Text> sorted = texts_;
    std::ranges::stable_sort(sorted, std::ranges::greater(), &Text::second);
    std::vector<std::string> named;
    for (const Text& text : sorted) named.push_back(text.first);
    if (named.size() > 2) {
      named.resize(2);
      named.push_back("...");
    }
    return fmt::format("{}", fmt::join(named, ", "));
  }

 private:
  using Text = std::pair<std::string, Bytes>;
  std::vector<Text> texts_;
};

struct BlockRow {
  std::string name;
  std::string result;
  std::string stored;
  std::string update;
};

/// One row for each outermost block (each copy of a repeat) that reads parameters, in program order.
std::vector<BlockRow> block_rows(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::map<std::string, std::size_t> position;
  struct Block {
    std::string name;
    TensorId result;
    std::vector<TensorId> parameters;
  };
  std::vector<Block> blocks;
  for (const GraphOperator& op : graph.operators()) {
    if (op.pass != Pass::kForward || op.results.empty()) continue;
    const std::string name = top_block(op.name);
    const auto [found, is_new] = position.try_emplace(name, blocks.size());
    if (is_new) blocks.push_back({name, op.results[0], {}});
    Block& block = blocks[found->second];
    block.result = op.results[0];
    for (const TensorId operand : op.operands) {
      if (graph.tensor(operand).kind != TensorKind::kParameter) continue;
      if (std::find(block.parameters.begin(), block.parameters.end(), operand) == block.parameters.end()) {
        block.parameters.push_back(operand);
      }
    }
  }
  std::map<TensorId, ValueId> stored;
  for (const Binding& binding : plan.program.given) stored.emplace(binding.tensor, binding.value);
  std::map<TensorId, std::string> updated;  // the layout in which a parameter's new value is computed
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (!tensor.updates || !tensor.producer) continue;
    const OperatorId op = *tensor.producer;
    updated[*tensor.updates] =
        to_string(result_layout(graph.operation(op), plan.strategies[op], plan.mesh, tensor.result), plan.mesh);
  }
  const IdVector<TensorId, const ProgramValue*> produced = produced_values(plan);
  std::vector<BlockRow> rows;
  for (Block& block : blocks) {
    if (block.parameters.empty()) continue;
    const ProgramValue* result = produced[block.result];
    BlockRow row{block.name, result == nullptr ? "" : to_string(result->layout, plan.mesh), "", ""};
    std::vector<TensorId> own;
    std::string owner;
    for (const TensorId parameter : block.parameters) {
      const std::string other = top_block(graph.tensor(parameter).name);
      if (other != block.name && position.contains(other)) {
        owner = other;
      } else {
        own.push_back(parameter);
      }
    }
    if (own.empty()) {
      row.stored = "shared with " + owner;
    } else {
      // Matrices represent the block; biases and norms only if there is none. For a tensor of which each device has its
      // own, the devices do not count as a dimension.
      const auto is_matrix = [&](TensorId id) {
        const GraphTensor& tensor = graph.tensor(id);
        return tensor.type.shape.size() >= (tensor.layerwise_parallel ? 3 : 2);
      };
      const bool has_matrix = std::any_of(own.begin(), own.end(), is_matrix);
      LayoutTexts layouts, updates;
      for (const TensorId parameter : own) {
        if (has_matrix && !is_matrix(parameter)) continue;
        const Bytes bytes = graph.tensor(parameter).type.bytes();
        const auto value = stored.find(parameter);
        if (value != stored.end()) {
          layouts.add(to_string(plan.program.values[value->second].layout, plan.mesh), bytes);
        }
        if (const auto update = updated.find(parameter); update != updated.end()) updates.add(update->second, bytes);
      }
      row.stored = layouts.few();
      row.update = updates.few();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    widest = std::max(widest, end - begin);
    begin = end + 1;
  }
  return widest;
}

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

std::string laid_out(const Plan& plan) {
  const std::vector<BlockRow> rows = block_rows(plan);
  if (rows.empty()) return "";
  std::vector<std::string> names, keys;
  for (const BlockRow& row : rows) {
    names.push_back(row.name);
    keys.push_back(row.result + "|" + row.stored + "|" + row.update);
  }
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight});
  const bool updates = plan.graph->is_training();
  table.add({"layouts   ", "result", "weights stored", updates ? "update" : ""});
  const std::vector<NameRun> runs = fold_runs(names, keys);
  for (std::size_t i = 0; i < std::min(runs.size(), kMostBlocks); ++i) {
    const BlockRow& row = rows[runs[i].first];
    table.add({runs[i].name, row.result, row.stored, row.update,
               runs[i].count > 1 ? fmt::format("{} x", runs[i].count) : ""});
  }
  std::string text = table.to_string(2);
  std::size_t num_shown = std::min(runs.size(), kMostBlocks);
  if (widest_line(text) > kTerminalWidth) {
    // Layouts of many sub-axes continue on the next line.
    TextTable narrow({Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight});
    narrow.add({"layouts   ", "result", "weights stored", updates ? "update" : ""});
    std::size_t num_lines = 0;
    num_shown = 0;
    for (std::size_t i = 0; i < std::min(runs.size(), kMostBlocks) && num_lines < kMostLayoutLines; ++i, ++num_shown) {
      const BlockRow& row = rows[runs[i].first];
      const std::vector<std::string> results = wrapped(row.result, 26, 1), stored = wrapped(row.stored, 21, 1),
                                     updated = wrapped(row.update, 21, 1);
      const std::size_t lines = std::max({results.size(), stored.size(), updated.size(), std::size_t{1}});
      num_lines += lines;
      const auto line_of = [](const std::vector<std::string>& cell, std::size_t line) {
        return line < cell.size() ? cell[line] : std::string();
      };
      for (std::size_t line = 0; line < lines; ++line) {
        const bool is_first = line == 0;
        narrow.add({is_first ? shortened(runs[i].name, 18) : std::string(), line_of(results, line),
                    line_of(stored, line), line_of(updated, line),
                    is_first && runs[i].count > 1 ? fmt::format("{} x", runs[i].count) : ""});
      }
    }
    text = narrow.to_string(2);
  }
  if (runs.size() > num_shown) {
    text += fmt::format("  {}\n", counted(static_cast<std::int64_t>(runs.size() - num_shown), "more block"));
  }
  return text;
}

// --- time ------------------------------------------------------------------------------------------------------------

std::string time_table(const Plan& plan) {
  const ColumnUnit unit = time_unit(std::max(plan.time.computation, plan.time.communication));
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  table.add({fmt::format("time, {:<4}", unit.name), "compute", "communication"});
  const auto add = [&](std::string_view name, const PassTimes& times) {
    table.add({std::string(name), unit.format(times.computation), unit.format(times.communication)});
  };
  if (plan.graph->is_training()) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kUpdate}) {
      add(to_string(pass), pass_times(plan.program, pass));
    }
  }
  add("step", {plan.time.computation, plan.time.communication});
  return table.to_string(2);
}

// --- costliest collectives ---------------------------------------------------------------------------------------------

/// The mean of a group in the column's unit, or in bytes if that would print as zero.
std::string mean_bytes(const CollectiveGroup& group, const ColumnUnit& unit) {
  const Bytes mean = group.bytes / static_cast<Bytes>(group.count);
  const std::string text = unit.format(mean);
  return text.find_first_of("123456789") == std::string::npos ? format_bytes(mean) : text;
}

std::string collectives_table(const Plan& plan) {
  const std::vector<CollectiveGroup> groups = costliest_collectives(plan);
  if (groups.empty()) return "";
  const std::size_t shown =
      groups.size() == kMostCollectives + 1 ? groups.size() : std::min(groups.size(), kMostCollectives);
  Picoseconds largest = 0;
  Bytes most_bytes = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    largest = std::max(largest, groups[i].time);
    most_bytes = std::max(most_bytes, groups[i].bytes / static_cast<Bytes>(groups[i].count));
  }
  const ColumnUnit time = time_unit(largest);
  const ColumnUnit bytes = bytes_unit(most_bytes);
  // The origins get the rest of the width.
  const std::string mean = fmt::format("mean {}", bytes.name);
  std::size_t what_width = std::string_view("costliest collectives").size(), axes_width = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    what_width = std::max(what_width, groups[i].what.size());
    axes_width = std::max(axes_width, groups[i].axes.size());
  }
  const std::size_t used = 2 + what_width + 2 + axes_width + 2 + 5 + 2 + mean.size() + 2 + 6 + 2;
  const std::size_t from_width = used + 20 < kTerminalWidth ? kTerminalWidth - used : 20;
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  table.add({"costliest collectives", "", "count", mean, std::string(time.name), "from"});
  Picoseconds rest = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const CollectiveGroup& group = groups[i];
    if (i >= shown) {
      rest += group.time;
      continue;
    }
    table.add({group.what, group.axes, fmt::format("{}", group.count), mean_bytes(group, bytes),
               time.format(group.time), shortened(group.from, from_width)});
  }
  if (rest > 0) table.add({fmt::format("{} more", groups.size() - shown), "", "", "", time.format(rest)});
  return table.to_string(2);
}

// --- peak ------------------------------------------------------------------------------------------------------------

std::ptrdiff_t peak_worker(const MemoryProfile& memory) {
  return std::max_element(memory.worker_peaks.begin(), memory.worker_peaks.end()) - memory.worker_peaks.begin();
}

std::string peak_line(const Plan& plan) {
  const MemoryProfile& memory = plan.memory;
  if (plan.program.instructions.empty()) return "";
  const Instruction& at = plan.program.instructions[memory.peak_instruction];
  const std::string name = model_name(*plan.graph, at.op ? plan.graph->operators()[*at.op].name : at.origin->producer);
  const ColumnUnit unit = bytes_unit(memory.peak);
  const bool is_repeated = plan.program.micro_batches > 1 && at.runs > 1 && !memory.is_peak_of_last_run;
  const std::string when = plan.program.workers > 1 ? fmt::format("on worker {}", peak_worker(plan.memory))
                                                    : fmt::format("at {}{}", format_time(plan.time_of_peak()),
                                                                  is_repeated ? " of each micro-batch" : "");
  std::string words = fmt::format("{} {}, {} of {}:", format_bytes(memory.peak), when, to_string(at.pass), name);
  const auto holders = peak_holders(plan);
  Bytes rest = 0;
  std::string list;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    // Holders below 1 % of the peak are not named.
    if (i >= kMostHolders || holders[i].second * 100 < memory.peak) {
      rest += holders[i].second;
    } else {
      list += fmt::format("{}{} {}", list.empty() ? " " : ", ", holders[i].first, unit.format(holders[i].second));
    }
  }
  if (rest * 100 >= memory.peak) list += fmt::format(", others {}", unit.format(rest));
  return wrapped_line("peak", words + list);
}

std::string verbose_lines(const Plan& plan, const std::vector<PathClass>& classes) {
  std::string text = fmt::format("\n  options     search {}, seed {}", plan.options.search, plan.options.seed);
  for (const auto& [name, value] : plan.options.dims) text += fmt::format(", {}={}", name, value);
  for (const auto& [name, entry] : plan.options.strategies) text += fmt::format(", {}={}", name, entry);
  text += '\n';
  for (const auto& [key, source] : plan.cluster.sources) text += wrapped_line("cluster", key + ": " + source);
  for (const StageStatistics& stage : plan.statistics) {
    std::string figures;
    for (const auto& [name, value] : stage.figures)
      figures += fmt::format("{}{} {}", figures.empty() ? "" : ", ", name, value);
    text += wrapped_line("search", stage.stage + ": " + figures);
  }
  text += path_table(plan, classes);
  text += fusion_report(plan);
  return text;
}

}  // namespace

std::string summary_report(const Plan& plan, const SummaryOptions& options) {
  const std::string workers = plan.program.workers > 1 ? fmt::format("{} workers of ", plan.program.workers) : "";
  std::string text = paragraph_lines(fmt::format("{}, {}on {}: {}{}, mesh {}, level {} ({})", plan.graph->name(),
                                                 training_words(*plan.graph), plan.cluster.name, workers,
                                                 counted(plan.mesh.num_devices(), "device"), mesh_words(plan.mesh),
                                                 number_of(plan.options.level), to_string(plan.options.level))) +
                     '\n';
  text += fits_line(plan, options.colour);
  text += step_line(plan);
  text += repeated_line(plan);
  const std::vector<PathClass> classes = path_classes(plan, step_path(plan));
  text += overlap_line(plan);
  text += path_line(plan, classes);
  text += startup_line(plan);
  text += per_device_line(plan);
  text += objective_line(plan);
  text += layers_line(plan);
  text += mindspore_line(plan);
  text += uneven_line(plan) + padding_line(plan);
  const bool is_proven =
      plan.overlapped_bound ? plan.time.step() <= *plan.overlapped_bound : plan.status == PlanStatus::kOptimal;
  if (plan.options.time_limit > 0 && !is_proven) {
    text += fmt::format("  searched    with a time limit of {:g} s: another run may find another plan\n",
                        plan.options.time_limit);
  }
  text += figure_line("proven", options.proof.word, options.proof.words);
  const auto paragraph = [&](const std::string& lines) {
    if (!lines.empty()) text += '\n' + lines;
  };
  paragraph(shapes_table(plan));
  const bool has_workers = plan.program.workers > 1;
  if (!has_workers || plan.mesh.num_devices() > 1) paragraph(laid_out(plan));
  if (has_workers) paragraph(placed_lines(plan));
  if (const std::string patterns = parallelism_patterns(plan); !patterns.empty())
    text += wrapped_line("in short", patterns);
  paragraph(has_workers ? workers_table(plan) : time_table(plan));
  paragraph(collectives_table(plan));
  paragraph(peak_line(plan));
  if (!options.out_folder.empty()) {
    text += '\n' + wrapped_line("written", fmt::format("{}: {}", options.out_folder, fmt::join(options.written, ", ")));
  }
  if (!options.next.empty()) text += wrapped_line("next", options.next);
  if (options.verbose) text += verbose_lines(plan, classes);
  return text;
}

}  // namespace shardplan
