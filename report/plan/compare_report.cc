#include "report/plan/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "base/json_text.h"
#include "graph/folded_names.h"
#include "report/metrics/parallelism_patterns.h"
#include "report/metrics/plan_metrics.h"
#include "report/text/strategy_text.h"
#include "report/text/text_table.h"

// A table of figures with the best of each column, and below it one sentence per plan: its named parallelism, and how
// far it differs from the first. Full layouts are printed with `all`.

namespace shardplan {
namespace {

using Align = TextTable::Align;

constexpr std::size_t kMostNameLength = 34;

/// Differences by folded name in order of first appearance. Copies of a repeat with the same text are joined, and so
/// are different names with the same text.
class LevelDifferences {
 public:
  void add(const std::string& name, const std::string& words) {
    const std::string folded = folded_name(name);
    const auto [found, is_new] = position_.try_emplace(words, lines_.size());
    if (is_new) lines_.push_back({{}, words});
    std::vector<std::string>& names = lines_[found->second].names;
    if (std::find(names.begin(), names.end(), folded) == names.end()) names.push_back(folded);
  }

  void append_to(std::vector<Difference>& result) const {
    for (const Line& line : lines_) result.push_back({fmt::format("{}", fmt::join(line.names, ", ")), line.words});
  }

 private:
  struct Line {
    std::vector<std::string> names;
    std::string words;
  };
  std::vector<Line> lines_;
  std::map<std::string, std::size_t> position_;
};

/// "layers.*.attn.qkv.weight, layers.*.up.weight and 3 more", shortened to a column's width.
std::string shortened(const std::string& names) {
  if (names.size() <= kMostNameLength) return names;
  std::vector<std::string> list;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(", ", begin), names.size());
    list.push_back(names.substr(begin, end - begin));
    begin = end + 2;
  }
  if (list.size() == 1) return names;
  return fmt::format("{} and {} more", list[0], list.size() - 1);
}

std::map<TensorId, const ProgramValue*> stored_values(const Plan& plan) {
  std::map<TensorId, const ProgramValue*> stored;
  for (const Binding& binding : plan.program.given) stored.emplace(binding.tensor, &plan.program.values[binding.value]);
  return stored;
}

std::vector<std::vector<TextTable::Cell>> figures(const std::vector<ComparedPlan>& plans) {
  // A unit in which the searched plans differ; one device, or data parallelism over slow links, is often a hundred times
  // slower.
  Picoseconds most_time = 0, most_searched = 0;
  Bytes most_bytes = 0;
  for (const ComparedPlan& row : plans) {
    most_time = std::max(most_time, row.time.step());
    if (row.fits && row.plan != nullptr) most_searched = std::max(most_searched, row.time.step());
    most_bytes = std::max(most_bytes, row.peak);
  }
  const ColumnUnit time = time_unit(most_searched > 0 ? most_searched : most_time);
  const ColumnUnit bytes = bytes_unit(most_bytes);
  std::vector<std::vector<TextTable::Cell>> rows;
  const std::string ms(time.name);
  bool has_mindspore = false;
  MindSporeValue most_weighted;
  for (const ComparedPlan& row : plans) {
    if (!row.mindspore) continue;
    has_mindspore = true;
    most_weighted.parts = std::max(most_weighted.parts, row.mindspore->parts);
  }
  const auto [weighted_size, weighted_name] = weighted_unit(most_weighted);
  rows.push_back({"", "", "step", "compute", "communication", "exposed", "repeated", "peak", "ratio", "gap"});
  rows.push_back({"", "", ms, ms, ms, ms, ms, std::string(bytes.name), "", "%"});
  if (has_mindspore) {
    rows[0].push_back("mindspore");
    rows[1].push_back(fmt::format("weighted {}", weighted_name));
  }
  for (const ComparedPlan& row : plans) {
    rows.push_back({row.name, row.objective, time.format(row.time.step()), time.format(row.time.computation),
                    time.format(row.time.communication), time.format(row.time.exposed), time.format(row.time.repeated),
                    bytes.format(row.peak), ratio_text(row.time),
                    !row.fits ? "no fit"
                    : row.gap ? gap_text(row.gap)
                              : ""});
    if (has_mindspore) {
      rows.back().push_back(row.mindspore ? three_digits(row.mindspore->weighted_bytes() / weighted_size) : "-");
    }
    if (row.ended_early) rows.back().push_back("*");
  }
  // The best of the plans that fit; a column of equal values has no best.
  const std::vector<std::function<double(const ComparedPlan&)>> badness{
      [](const ComparedPlan& row) { return static_cast<double>(row.time.step()); },
      [](const ComparedPlan& row) { return static_cast<double>(row.time.computation); },
      [](const ComparedPlan& row) { return static_cast<double>(row.time.communication); },
      [](const ComparedPlan& row) { return static_cast<double>(row.time.exposed); },
      [](const ComparedPlan& row) { return static_cast<double>(row.time.repeated); },
      [](const ComparedPlan& row) { return static_cast<double>(row.peak); },
      [](const ComparedPlan& row) { return -ratio(row.time).value_or(-1); }};
  for (std::size_t column = 0; column < badness.size(); ++column) {
    double best = std::numeric_limits<double>::infinity(), worst = -best;
    for (const ComparedPlan& row : plans) {
      worst = std::max(worst, badness[column](row));
      if (row.fits) best = std::min(best, badness[column](row));
    }
    if (best == worst) continue;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (plans[i].fits && badness[column](plans[i]) == best) rows[i + 2][column + 2].style = TextStyle::kBold;
    }
  }
  return rows;
}

std::string all_lines(const Plan& from, const Plan& plan) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft});
  for (const OperatorId op : plan.graph->operators().ids()) {
    if (from.strategies[op] == plan.strategies[op]) continue;
    const Operation& operation = plan.graph->operation(op);
    table.add({plan.graph->operators()[op].name.str(), strategy_words(operation, plan.strategies[op], plan.mesh),
               "instead of " + strategy_words(operation, from.strategies[op], plan.mesh)});
  }
  return table.to_string(4);
}

/// "10 of 32 operators and 4 stored tensors differ from level 0"; empty if nothing does.
std::string difference_count(const ComparedPlan& first, const ComparedPlan& row) {
  const auto before = stored_values(*first.plan);
  std::size_t tensors = 0, operators = 0;
  for (const auto& [tensor, value] : stored_values(*row.plan)) {
    const auto found = before.find(tensor);
    if (found != before.end() && !(found->second->layout == value->layout)) ++tensors;
  }
  for (const OperatorId op : row.plan->graph->operators().ids()) {
    if (!(first.plan->strategies[op] == row.plan->strategies[op])) ++operators;
  }
  std::vector<std::string> parts;
  if (operators > 0) parts.push_back(fmt::format("{} of {} operators", operators, num_operators(*row.plan->graph)));
  if (tensors > 0) parts.push_back(fmt::format("{} stored tensor{}", tensors, tensors == 1 ? "" : "s"));
  if (parts.empty()) return {};
  return fmt::format("{} differ from {}", fmt::join(parts, " and "), first.name);
}

/// One sentence for each plan: its named patterns, and how much it differs from the first.
std::string in_short(const std::vector<ComparedPlan>& plans) {
  const ComparedPlan& first = plans.front();
  const std::string own = parallelism_patterns(*first.plan);
  std::size_t width = 0;
  for (const ComparedPlan& row : plans) width = std::max(width, row.name.size());
  std::string text;
  for (const ComparedPlan& row : plans) {
    if (row.plan == nullptr) continue;
    std::string words = &row == &first ? own : parallelism_patterns(*row.plan);
    if (&row != &first) {
      const std::string count = difference_count(first, row);
      if (count.empty()) {
        words = fmt::format("{}'s plan", first.name);
      } else {
        if (!own.empty() && words == own) words = fmt::format("{}'s patterns", first.name);
        words = words.empty() ? count : fmt::format("{}; {}", words, count);
      }
    }
    const bool is_alone = first.plan->mesh.num_devices() == 1 && first.plan->program.workers == 1;
    if (is_alone && &row == &first) words = "all on one device";
    if (words.empty()) words = "no named pattern";
    bool is_first = true;
    for (const std::string& line : wrapped(words, kTerminalWidth - width - 4)) {
      text += fmt::format("  {:<{}}  {}\n", is_first ? row.name : "", width, line);
      is_first = false;
    }
  }
  return text;
}

/// Folded, then every operator.
std::string difference_lines(const ComparedPlan& first, const ComparedPlan& row) {
  const std::vector<Difference> list = differences(*first.plan, *row.plan);
  if (list.empty()) return {};
  TextTable table({Align::kLeft, Align::kLeft});
  for (const Difference& difference : list) table.add({shortened(difference.name), difference.words});
  return fmt::format("\n  {}, instead of {}:\n{}\n{}", row.name, first.name, table.to_string(4),
                     all_lines(*first.plan, *row.plan));
}

}  // namespace

ComparedPlan compared(std::string name, const Plan& plan) {
  ComparedPlan row;
  row.name = std::move(name);
  row.objective = to_string(plan.options.level);
  row.time = plan.time;
  row.peak = plan.memory.peak;
  row.fits = plan.memory.peak <= plan.usable;
  row.ended_early = plan.ended_early;
  row.gap = open_gap(plan);
  row.plan = &plan;
  return row;
}

ComparedPlan compared(const Baseline& baseline) {
  ComparedPlan row;
  row.name = baseline.name;
  row.time = baseline.time;
  row.peak = baseline.peak;
  row.fits = baseline.fits;
  return row;
}

std::vector<Difference> differences(const Plan& from, const Plan& plan, std::size_t* num_operators) {
  const OperatorGraph& graph = *plan.graph;
  std::vector<Difference> result;
  LevelDifferences tensors, operators;
  const auto before = stored_values(from);
  for (const auto& [tensor, value] : stored_values(plan)) {
    const auto found = before.find(tensor);
    if (found == before.end() || found->second->layout == value->layout) continue;
    tensors.add(graph.tensor(tensor).name,
                fmt::format("{} {} instead of {}", graph.tensor(tensor).kind == TensorKind::kInput ? "given" : "stored",
                            to_string(value->layout, plan.mesh), to_string(found->second->layout, plan.mesh)));
  }
  std::size_t count = 0;
  for (const OperatorId op : graph.operators().ids()) {
    if (from.strategies[op] == plan.strategies[op]) continue;
    ++count;
    const Operation& operation = graph.operation(op);
    operators.add(graph.operators()[op].name,
                  fmt::format("{} instead of {}", strategy_words(operation, plan.strategies[op], plan.mesh),
                              strategy_words(operation, from.strategies[op], plan.mesh)));
  }
  tensors.append_to(result);
  operators.append_to(result);
  if (num_operators != nullptr) *num_operators = count;
  return result;
}

std::string compare_report(const std::vector<ComparedPlan>& plans, const CompareOptions& options) {
  const Plan& first = *plans.front().plan;
  std::string text =
      fmt::format("{}, {}on {}: {}, {} usable on each\n\n", first.graph->name(), training_words(*first.graph),
                  first.cluster.name, counted(first.cluster.num_devices(), "device"), format_bytes(first.usable));
  std::vector<std::vector<TextTable::Cell>> rows = figures(plans);
  std::vector<Align> columns(rows[1].size() + 1, Align::kRight);
  columns[0] = columns[1] = columns.back() = Align::kLeft;
  TextTable table(columns);
  for (std::vector<TextTable::Cell>& row : rows) table.add(std::move(row));
  text += table.to_string(2, options.colour);
  if (std::ranges::any_of(plans, &ComparedPlan::ended_early)) {
    text += "  * the best so far: a time limit or an interruption ended the search\n";
  }
  text += '\n';
  if (first.program.workers > 1) {
    text += "  of the busiest worker: compute, communication, and exposed, which includes its waiting\n\n";
  }
  text += in_short(plans);
  if (!options.all) return text;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i].plan != nullptr) text += difference_lines(plans.front(), plans[i]);
  }
  return text;
}

std::string compare_json(const std::vector<ComparedPlan>& plans) {
  const Plan& first = *plans.front().plan;
  Json rows = Json::array(), changes = Json::array();
  for (const ComparedPlan& row : plans) {
    const std::optional<double> quotient = ratio(row.time);
    const bool is_finite = quotient && *quotient < std::numeric_limits<double>::infinity();
    rows.push_back({{"name", row.name},
                    {"objective", row.objective.empty() ? Json(nullptr) : Json(row.objective)},
                    {"seconds",
                     {{"step", to_seconds(row.time.step())},
                      {"compute", to_seconds(row.time.computation)},
                      {"communication", to_seconds(row.time.communication)},
                      {"exposed", to_seconds(row.time.exposed)},
                      {"repeated", to_seconds(row.time.repeated)}}},
                    {"peak_bytes", row.peak},
                    {"fits", row.fits},
                    {"complete", !row.ended_early},
                    {"ratio", is_finite ? Json(*quotient) : Json(nullptr)},
                    {"gap", row.gap ? Json(*row.gap) : Json(nullptr)}});
    if (row.mindspore) rows.back()["mindspore_weighted_bytes"] = row.mindspore->weighted_bytes();
    if (row.plan == nullptr || row.plan == plans.front().plan) continue;
    std::size_t count = 0;
    Json lines = Json::array();
    for (const Difference& difference : differences(first, *row.plan, &count)) {
      lines.push_back({{"name", difference.name}, {"words", difference.words}});
    }
    changes.push_back({{"name", row.name}, {"operators", count}, {"differences", lines}});
  }
  Json document;
  document["schema"] = "shardplan.compare/1";
  document["model"] = first.graph->name();
  document["cluster"] = first.cluster.name;
  document["devices"] = first.cluster.num_devices();
  document["usable_bytes"] = first.usable;
  document["plans"] = rows;
  document["differs_from_first"] = changes;
  return json_document(document);
}

}  // namespace shardplan
