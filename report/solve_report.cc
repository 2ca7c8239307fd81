#include "report/solve_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"

namespace shardplan {
namespace {

/// (cost - bound) / bound in percent.
double gap_percent(std::int64_t cost, std::int64_t bound) {
  if (cost <= bound) return 0;
  return bound > 0 ? 100.0 * static_cast<double>(cost - bound) / static_cast<double>(bound) : 100;
}

double rounded(double value, double step) { return std::round(value / step) * step; }

std::int64_t figure(const StageStatistics& stage, std::string_view name) {
  for (const auto& [key, value] : stage.figures) {
    if (key == name) return value;
  }
  return 0;
}

}  // namespace

std::string choice_text(const std::optional<Choice>& choice) {
  std::string text = "[";
  if (choice) {
    for (const StrategyId strategy : choice->strategy) {
      if (text.size() > 1) text += ',';
      text += std::to_string(strategy.value());
    }
  }
  return text + "]";
}

std::string solve_json(const StrategyProblem& problem, const SolveSettings& settings, const PlanResult& result) {
  Json document;
  document["name"] = problem.name;
  document["search"] = settings.search;
  document["seed"] = settings.seed;
  document["threads"] = settings.threads;
  document["status"] = to_string(result.status);
  document["cost"] = result.choice ? Json(result.cost) : Json();
  document["bound"] = result.lower_bound;
  document["gap"] = result.choice ? Json(rounded(gap_percent(result.cost, result.lower_bound) / 100, 1e-6)) : Json();
  if (result.choice) {
    document["found_by"] = result.found_by;
    document["seconds_to_best"] = rounded(result.seconds_to_best, 1e-3);
  }
  document["statistics"] = Json::object();
  for (const StageStatistics& stage : result.statistics) {
    Json figures = Json::object();
    for (const auto& [name, value] : stage.figures) figures[name] = value;
    document["statistics"][stage.stage] = figures;
  }
  document["solution"] = Json::array();
  if (result.choice) {
    for (const StrategyId strategy : result.choice->strategy) document["solution"].push_back(strategy.value());
  }
  return json_line(document);
}

std::string solve_statistics(const PlanResult& result) {
  std::string text;
  for (const StageStatistics& stage : result.statistics) {
    text += stage.stage + "\n";
    for (const auto& [name, value] : stage.figures) text += fmt::format("  {:<28} {:>16}\n", name, value);
  }
  if (result.choice) text += fmt::format("found by {} at t {:.1f}\n", result.found_by, result.seconds_to_best);
  return text;
}

std::string SolveProgress::lines(const SearchProgress& progress, double seconds) {
  std::string text;
  if (progress.stage != nullptr && progress.stage->stage == "presolve") {
    text = fmt::format("# read {} nodes {} edges, presolve {} nodes {} edges, t {:.1f}\n", nodes_, edges_,
                       figure(*progress.stage, "core nodes"), figure(*progress.stage, "core edges"), seconds);
  }
  if (!progress.cost) return text;
  const bool is_better = progress.cost != shown_cost_;
  const bool is_new_bound = progress.lower_bound != shown_bound_;
  const bool is_proven = *progress.cost == progress.lower_bound;
  if (!is_better && !(is_new_bound && (is_proven || seconds >= shown_at_ + 1))) return text;
  shown_cost_ = progress.cost;
  shown_bound_ = progress.lower_bound;
  shown_at_ = seconds;
  return text + fmt::format("# cost {} bound {} gap {:.2f}% t {:.1f}{}\n", *shown_cost_, shown_bound_,
                            gap_percent(*shown_cost_, shown_bound_), shown_at_, is_proven ? " optimal" : "");
}

}  // namespace shardplan
