#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/write_files.h"
#include "cli/commands/commands.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "planner/level_comparison.h"
#include "planner/plan_notices.h"
#include "report/html/html_report.h"
#include "report/plan/compare_report.h"

namespace shardplan {
namespace {

struct CompareArguments {
  PlanningArguments planning;
  bool all = false;
  std::string html;  // a file; empty: none
  bool json = false;
};

/// What the searches noted, with the plans that it is about: "level 0, level 1: the time limit of 1 s ended ...".
void say_search_notices(const ModelPlanner& planning, const std::vector<ComparedPlan>& rows) {
  std::vector<std::pair<std::string, std::string>> found;  // text, names
  for (const ComparedPlan& row : rows) {
    if (row.plan == nullptr) continue;
    for (const std::string& text : search_notices(planning, *row.plan)) {
      const auto known = std::ranges::find(found, text, &std::pair<std::string, std::string>::first);
      if (known == found.end()) {
        found.emplace_back(text, row.name);
      } else {
        known->second += ", " + row.name;
      }
    }
  }
  for (const auto& [text, names] : found) notice(fmt::format("notice: {}: {}", names, text));
}

const char* end_of_search() {
  return interrupt_token().stop_requested() ? "the interruption" : "a limit ended the search";
}

int run(CompareArguments arguments) {
  const bool with_mindspore = std::exchange(arguments.planning.costs, "cluster") == "mindspore";
  const std::unique_ptr<ModelPlanner> planning = make_planning(arguments.planning);
  std::deque<Plan> plans;
  std::vector<ComparedPlan> rows;
  const auto add = [&](std::string name, Plan found) {
    plans.push_back(std::move(found));
    const Plan& plan = plans.back();
    if (is_found(plan.status)) {
      rows.push_back(compared(std::move(name), plan));
    } else if (plan.status == PlanStatus::kInfeasible) {
      notice(fmt::format("{}: no plan fits", name));
    } else {
      notice(fmt::format("{}: no plan was found before {}", name, end_of_search()));
    }
  };
  const PlanOptions& options = planning->options();
  std::vector<Plan> found = plans_of_levels(*planning, options.search, interrupt_token());
  for (const Level level : kLevels) {
    add(fmt::format("level {}", number_of(level)), std::move(found[static_cast<std::size_t>(number_of(level))]));
  }
  add("propagation", std::move(found.back()));
  if (with_mindspore) {
    Plan plan = planning->mindspore_plan(options.level, options.search, interrupt_token());
    if (interrupt_token().stop_requested()) note_interruption(plan);
    add("mindspore", std::move(plan));
  }
  const bool is_found = !rows.empty();
  if (!is_found) {
    plans.push_back(planning->smallest(interrupt_token()));
    if (plans.back().strategies.empty()) {
      notice(fmt::format("no plan, not even the one with the least memory, was found before {}", end_of_search()));
      return kNoFeasiblePlan;
    }
    rows.push_back(compared("least memory", plans.back()));
  }
  std::vector<Baseline> baselines;
  if (plans.front().program.workers > 1) {
    baselines = {planning->one_worker(plans.front())};
  } else {
    baselines = {planning->data_parallel(Level::kSpeed), planning->stand_alone()};
  }
  say_search_notices(*planning, rows);
  for (const Baseline& baseline : baselines) {
    rows.push_back(compared(baseline));
    // The shortest step that data parallelism can have; `plan` shows it as ordered by the plan's level.
    if (baseline.name == "data_parallel") rows.back().objective = to_string(Level::kSpeed);
    if (with_mindspore) rows.back().mindspore = planning->mindspore_value(baseline.strategies);
  }
  for (ComparedPlan& row : rows) {
    if (with_mindspore && row.plan != nullptr) row.mindspore = planning->mindspore_value(row.plan->strategies);
  }
  if (!arguments.html.empty()) {
    std::vector<HtmlPlan> pages;
    for (const ComparedPlan& row : rows) {
      if (row.plan != nullptr) pages.push_back({row.name, row.plan, {}});
    }
    write_file(arguments.html, html_report(pages, rows, compare_report(rows)));
  }
  print(arguments.json ? compare_json(rows) : compare_report(rows, {wants_colour(), arguments.all}));
  return is_found ? kDone : kNoFeasiblePlan;
}

}  // namespace

Command compare_command() {
  const auto arguments = std::make_shared<CompareArguments>();
  Command command;
  command.name = "compare";
  command.topic = "Plan";
  command.summary = "Compare levels 0, 1 and 2, propagation, data parallelism and one device side by side";
  command.examples = {
      {"configs/mlp.yaml", "what each objective costs, and where the plans differ"},
      {"configs/mlp.yaml --all", "with every layout and operator that differs"},
      {"out/plan.json", "the model, cluster and options of an earlier run"},
      {"configs/mlp.yaml --html compare.html", "also as a web page"},
      {"configs/mlp.yaml --cluster dgx-a100x2", "on another cluster"},
      {"configs/mlp.yaml --costs mindspore", "also the choice of MindSpore's cost model, and its value for the others"},
  };
  command.options = planning_options(arguments->planning, SavesStrategies::kNo);
  command.options.insert(command.options.begin(), {"", {model_argument(arguments->planning)}});
  command.options.push_back(
      {"Output",
       {flag("--all", arguments->all, "list every layout and operator that differs"), html_option(arguments->html),
        flag("--json", arguments->json, "print one JSON document")}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
