#include "report/plan/plan_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json_text.h"
#include "graph/folded_names.h"
#include "report/metrics/collective_groups.h"
#include "report/metrics/peak_holders.h"
#include "report/metrics/plan_metrics.h"
#include "report/metrics/step_path.h"
#include "report/metrics/step_shares.h"
#include "report/text/strategy_text.h"
#include "report/text/text_table.h"

// Both plans are reduced to lists by name in the model's terms (time by block, collectives, holders of the peak,
// layouts, strategies), which are compared by name. So plans of different graphs can be compared, and copies of a layer
// count as one.

namespace shardplan {
namespace {

using Align = TextTable::Align;
using Change = PlanDiff::Change;
using DiffLine = PlanDiff::Difference;

constexpr std::size_t kMostDifferences = 10;
constexpr std::size_t kMostName = 40;

/// Sums of both plans by name, in order of first appearance.
class ChangeList {
 public:
  void add(const std::string& name, std::int64_t amount, bool is_after) {
    const auto [found, is_new] = position_.try_emplace(name, changes_.size());
    if (is_new) changes_.push_back({name, 0, 0});
    (is_after ? changes_[found->second].after : changes_[found->second].before) += amount;
  }

  /// Changed entries, largest change first.
  std::vector<Change> changed() const {
    std::vector<Change> list;
    for (const Change& change : changes_) {
      if (change.change() != 0) list.push_back(change);
    }
    const auto size = [](const Change& change) { return change.change() < 0 ? -change.change() : change.change(); };
    std::stable_sort(list.begin(), list.end(), [&](const Change& a, const Change& b) { return size(a) > size(b); });
    return list;
  }

 private:
  std::vector<Change> changes_;
  std::map<std::string, std::size_t> position_;
};

class PlanDifferences {
 public:
  void add(const std::string& name, const std::string& before, const std::string& after, Bytes bytes) {
    const auto [found, is_new] = position_.try_emplace({before, after}, list_.size());
    if (is_new) list_.push_back({{}, before, after, 0});
    DiffLine& difference = list_[found->second];
    const std::string folded = folded_name(name);
    if (names_.insert({found->second, folded}).second) difference.names.push_back(folded);
    difference.bytes += bytes;
  }
  std::vector<DiffLine> take() { return std::move(list_); }

 private:
  std::vector<DiffLine> list_;
  std::map<std::pair<std::string, std::string>, std::size_t> position_;
  std::set<std::pair<std::size_t, std::string>> names_;
};

void add_times(const Plan& plan, bool is_after, ChangeList& blocks, ChangeList& collectives) {
  for (const Instruction& instruction : plan.program.instructions) {
    const std::optional<OperatorId> op = spender(plan, instruction);
    blocks.add(op ? folded_block(*plan.graph, *op) : "inputs and stored tensors", instruction.time_of_step(), is_after);
  }
  for (const CollectiveGroup& group : costliest_collectives(plan)) {
    collectives.add(fmt::format("{} {}, {}", group.what, group.axes, group.from), group.time, is_after);
  }
}

std::vector<Change> path_changes(const Plan& before, const Plan& after) {
  const CriticalPath old = step_path(before), now = step_path(after);
  if (old.shares.empty() || now.shares.empty()) return {};
  ChangeList list;
  for (const PathClass& one : path_classes(before, old)) list.add(one.name, one.time(), false);
  for (const PathClass& one : path_classes(after, now)) list.add(one.name, one.time(), true);
  return list.changed();
}

std::string layout_words(const Plan& plan, const ProgramValue& value) { return to_string(value.layout, plan.mesh); }

std::vector<DiffLine> stored_differences(const Plan& before, const Plan& after) {
  std::map<std::string, const ProgramValue*> old;
  for (const Binding& binding : before.program.given) {
    old.emplace(before.graph->tensor(binding.tensor).name, &before.program.values[binding.value]);
  }
  PlanDifferences list;
  std::set<std::string> seen;
  for (const Binding& binding : after.program.given) {
    const ProgramValue& value = after.program.values[binding.value];
    const std::string& name = after.graph->tensor(binding.tensor).name;
    seen.insert(name);
    const auto found = old.find(name);
    const std::string now = layout_words(after, value);
    if (found == old.end()) {
      list.add(name, "", now, value.bytes);
    } else if (layout_words(before, *found->second) != now || found->second->bytes != value.bytes) {
      list.add(name, layout_words(before, *found->second), now, value.bytes - found->second->bytes);
    }
  }
  for (const Binding& binding : before.program.given) {
    const std::string& name = before.graph->tensor(binding.tensor).name;
    if (!seen.contains(name)) list.add(name, layout_words(before, *old[name]), "", -old[name]->bytes);
  }
  return list.take();
}

std::string words_of(const Plan& plan, OperatorId op) {
  return strategy_words(plan.graph->operation(op), plan.strategies[op], plan.mesh);
}

std::vector<DiffLine> operator_differences(const Plan& before, const Plan& after, std::size_t& count,
                                           std::size_t& all) {
  all = num_operators(*after.graph);
  PlanDifferences list;
  for (const OperatorId op : after.graph->operators().ids()) {
    if (is_border(*after.graph, op)) continue;
    const std::string& name = after.graph->operators()[op].name;
    const std::optional<OperatorId> other = before.graph->find_operator(name);
    const std::string was = other ? words_of(before, *other) : "";
    const std::string now = words_of(after, op);
    if (was == now) continue;
    ++count;
    list.add(name, was, now, 0);
  }
  for (const OperatorId op : before.graph->operators().ids()) {
    const std::string& name = before.graph->operators()[op].name;
    if (is_border(*before.graph, op) || after.graph->find_operator(name)) continue;
    ++count;
    ++all;
    list.add(name, words_of(before, op), "", 0);
  }
  return list.take();
}

/// "layers.*.up.weight and 3 more".
std::string names_text(const std::vector<std::string>& names) {
  std::string text = names[0];
  if (text.size() > kMostName) text = text.substr(0, kMostName - 3) + "...";
  return names.size() == 1 ? text : fmt::format("{} and {} more", text, names.size() - 1);
}

std::string signed_amount(std::int64_t amount, const ColumnUnit& unit) {
  const std::string text = unit.format(amount < 0 ? -amount : amount);
  const bool is_nothing = text.find_first_of("123456789") == std::string::npos;
  return (is_nothing ? "" : amount > 0 ? "+" : "-") + text;
}

bool is_visible(const Change& change, const ColumnUnit& unit) {
  return signed_amount(change.change(), unit).find_first_of("+-") == 0;
}

std::string more_text(std::size_t count) { return count == 0 ? "" : fmt::format("  {} more (--all)\n", count); }

std::size_t shown_of(std::size_t size, const DiffOptions& options) {
  return options.all || size <= kMostDifferences + 1 ? size : kMostDifferences;
}

std::string change_table(const std::string& title, const std::vector<Change>& changes, const ColumnUnit& unit,
                         const DiffOptions& options) {
  if (changes.empty()) return {};
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add({fmt::format("{}, {}", title, unit.name), "before", "after", "change"});
  // Sorted by size, so changes that print as zero are at the end.
  std::size_t visible = changes.size();
  while (!options.all && visible > 1 && !is_visible(changes[visible - 1], unit)) --visible;
  const std::size_t shown = shown_of(visible, options);
  for (std::size_t i = 0; i < shown; ++i) {
    const Change& change = changes[i];
    table.add(
        {change.name, unit.format(change.before), unit.format(change.after), signed_amount(change.change(), unit)});
  }
  return '\n' + table.to_string(2, options.colour) + more_text(changes.size() - shown);
}

std::string difference_table(const std::string& title, const std::vector<DiffLine>& list, bool has_bytes,
                             const DiffOptions& options) {
  if (list.empty()) return {};
  Bytes most = 0;
  for (const DiffLine& difference : list) most = std::max(most, std::max(difference.bytes, -difference.bytes));
  const ColumnUnit bytes = bytes_unit(most);
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight});
  table.add({title, "before", "after", has_bytes ? fmt::format("{} per device", bytes.name) : ""});
  const std::size_t shown = shown_of(list.size(), options);
  for (std::size_t i = 0; i < shown; ++i) {
    const DiffLine& difference = list[i];
    table.add({names_text(difference.names), difference.before.empty() ? "-" : difference.before,
               difference.after.empty() ? "-" : difference.after,
               has_bytes ? signed_amount(difference.bytes, bytes) : ""});
  }
  return '\n' + table.to_string(2, options.colour) + more_text(list.size() - shown);
}

std::string asked_text(const Plan& plan) {
  return fmt::format("{}, {}{} of {}, mesh {}, level {} ({}){}", plan.graph->name(), training_words(*plan.graph),
                     counted(plan.cluster.num_devices(), "device"), plan.cluster.name, mesh_words(plan.mesh),
                     number_of(plan.options.level), to_string(plan.options.level),
                     plan.options.overlap ? "" : ", overlap off");
}

std::string figures_table(const Plan& before, const Plan& after, const DiffOptions& options) {
  const ColumnUnit time = time_unit(std::max(before.time.step(), after.time.step()));
  const ColumnUnit bytes = bytes_unit(std::max(before.memory.peak, after.memory.peak));
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add({"", "before", "after", "change"});
  const auto add = [&](const std::string& name, std::int64_t old, std::int64_t now, const ColumnUnit& unit) {
    table.add(
        {fmt::format("{}, {}", name, unit.name), unit.format(old), unit.format(now), signed_amount(now - old, unit)});
  };
  add("step", before.time.step(), after.time.step(), time);
  add("compute", before.time.computation, after.time.computation, time);
  add("communication", before.time.communication, after.time.communication, time);
  add("peak memory", before.memory.peak, after.memory.peak, bytes);
  table.add({"ratio", ratio_text(before.time), ratio_text(after.time)});
  return table.to_string(2, options.colour);
}

/// `value` writes an amount in the unit.
Json json_of(const std::vector<Change>& changes, const std::string& unit, Json (*value)(std::int64_t)) {
  Json list = Json::array();
  for (const Change& change : changes) {
    list.push_back(
        {{"name", change.name}, {"before_" + unit, value(change.before)}, {"after_" + unit, value(change.after)}});
  }
  return list;
}
Json seconds_of(std::int64_t time) { return to_seconds(time); }
Json bytes_of(std::int64_t bytes) { return bytes; }

Json json_of(const std::vector<DiffLine>& list, bool has_bytes) {
  Json result = Json::array();
  for (const DiffLine& difference : list) {
    Json entry{{"names", difference.names},
               {"before", difference.before.empty() ? Json() : Json(difference.before)},
               {"after", difference.after.empty() ? Json() : Json(difference.after)}};
    if (has_bytes) entry["change_bytes"] = difference.bytes;
    result.push_back(std::move(entry));
  }
  return result;
}

Json json_of(const Plan& plan, const std::string& name) {
  return {{"plan", name},
          {"model", plan.graph->name()},
          {"cluster", plan.cluster.name},
          {"mesh", plan.mesh.to_string()},
          {"level", number_of(plan.options.level)},
          {"seconds",
           {{"step", to_seconds(plan.time.step())},
            {"compute", to_seconds(plan.time.computation)},
            {"communication", to_seconds(plan.time.communication)}}},
          {"peak_bytes", plan.memory.peak}};
}

}  // namespace

PlanDiff plan_diff(const Plan& before, const Plan& after) {
  PlanDiff diff;
  ChangeList blocks, collectives, holders;
  add_times(before, false, blocks, collectives);
  add_times(after, true, blocks, collectives);
  for (const auto& [name, bytes] : peak_holders(before)) holders.add(name, bytes, false);
  for (const auto& [name, bytes] : peak_holders(after)) holders.add(name, bytes, true);
  diff.path = path_changes(before, after);
  diff.blocks = blocks.changed();
  diff.collectives = collectives.changed();
  diff.holders = holders.changed();
  diff.stored = stored_differences(before, after);
  diff.operators = operator_differences(before, after, diff.num_differing, diff.num_operators);
  return diff;
}

std::string diff_report(const Plan& before, const Plan& after, const DiffOptions& options) {
  const PlanDiff diff = plan_diff(before, after);
  std::string text = fmt::format("before  {}: {}\n", options.before, asked_text(before));
  text += fmt::format("after   {}: {}\n\n", options.after, asked_text(after));
  text += figures_table(before, after, options);
  const bool is_alike = before.time.step() == after.time.step() && before.memory.peak == after.memory.peak;
  if (diff.is_empty() && is_alike && diff.holders.empty()) return text + "\n  the plans are equal\n";
  if (diff.is_empty()) text += "\n  everything is sharded alike; the instructions run in another order\n";
  const ColumnUnit time = time_unit(std::max(before.time.step(), after.time.step()));
  const ColumnUnit bytes = bytes_unit(std::max(before.memory.peak, after.memory.peak));
  text += change_table("critical path", diff.path, time, options);
  text += change_table("time by block", diff.blocks, time, options);
  text += change_table("collectives", diff.collectives, time, options);
  text += change_table("live at the peak", diff.holders, bytes, options);
  text += difference_table("stored", diff.stored, true, options);
  text +=
      difference_table(fmt::format("sharded differently: {} of {} operators", diff.num_differing, diff.num_operators),
                       diff.operators, false, options);
  return text;
}

std::string diff_json(const Plan& before, const Plan& after, const DiffOptions& options) {
  const PlanDiff diff = plan_diff(before, after);
  Json document;
  document["schema"] = "shardplan.diff/1";
  document["before"] = json_of(before, options.before);
  document["after"] = json_of(after, options.after);
  document["critical_path"] = json_of(diff.path, "seconds", seconds_of);
  document["blocks"] = json_of(diff.blocks, "seconds", seconds_of);
  document["collectives"] = json_of(diff.collectives, "seconds", seconds_of);
  document["alive_at_peak"] = json_of(diff.holders, "bytes", bytes_of);
  document["stored"] = json_of(diff.stored, true);
  document["operators"] = json_of(diff.operators, false);
  document["operators_differing"] = diff.num_differing;
  return json_document(document);
}

}  // namespace shardplan
