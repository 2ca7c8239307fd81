#include "report/solve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "solver/first_choice.h"

namespace shardplan {
namespace {

/// (cost - bound) / bound in percent.
double gap_percent(std::int64_t cost, std::int64_t bound) {
  if (cost <= bound) return 0;
  return bound > 0 ? 100.0 * static_cast<double>(cost - bound) / static_cast<double>(bound) : 100;
}

/// To so many parts of one; division gives the nearest number, which prints without further digits.
double rounded(double value, double parts) { return std::round(value * parts) / parts; }

std::optional<std::int64_t> figure(const StageStatistics& stage, std::string_view name) {
  for (const auto& [key, value] : stage.figures) {
    if (key == name) return value;
  }
  return std::nullopt;
}

/// Presolve gives no figures of a core that it did not come to.
std::string text_of_presolve(const StageStatistics& stage) {
  const std::optional<std::int64_t> nodes = figure(stage, "core nodes");
  return nodes ? fmt::format(", presolve {} nodes {} edges", *nodes, figure(stage, "core edges").value_or(0)) : "";
}

/// Why no choice is feasible.
std::string text_of_infeasible(const StrategyProblem& problem) {
  const Evaluation least = evaluate(problem, least_bytes_choice(problem, {}));
  if (least.worst_excess > 0) {
    return fmt::format("# no choice is feasible: the least usages exceed the limit by {}\n", least.worst_excess);
  }
  return "# no choice is feasible: each one that fits in memory has a cost of 2^58 or more, which is forbidden\n";
}

std::string text_of_limit(Limit limit) {
  return limit == Limit::kInterrupted ? "interrupted" : fmt::format("the {} limit was reached", to_string(limit));
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
  document["gap"] = result.choice ? Json(rounded(gap_percent(result.cost, result.lower_bound) / 100, 1e6)) : Json();
  if (result.choice) {
    document["found_by"] = result.found_by;
    document["seconds_to_best"] = rounded(result.seconds_to_best, 1e3);
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
    text = fmt::format("# read {} nodes {} edges{}, t {:.1f}\n", nodes_, edges_, text_of_presolve(*progress.stage),
                       seconds);
  }
  if (progress.cost && (!cost_ || *progress.cost < *cost_)) cost_ = progress.cost;
  bound_ = std::max(bound_, progress.lower_bound);
  if (!cost_) return text;
  const bool is_better = cost_ != shown_cost_;
  const bool is_new_bound = bound_ != shown_bound_;
  const bool is_proven = *cost_ == bound_;
  if (!is_better && !(is_new_bound && (is_proven || seconds >= shown_at_ + 1))) return text;
  return text + figures(seconds);
}

std::string SolveProgress::last_line(const StrategyProblem& problem, const PlanResult& result, double seconds) {
  if (result.status == PlanStatus::kInfeasible) return text_of_infeasible(problem);
  if (!result.choice) {
    const std::string reason = result.stopped_by         ? text_of_limit(*result.stopped_by)
                               : result.obstacle.empty() ? "the search ended without one"
                                                         : result.obstacle;
    return fmt::format("# no choice was found: {}, t {:.1f}\n", reason, seconds);
  }
  cost_ = result.cost;
  bound_ = result.lower_bound;
  return cost_ == shown_cost_ && bound_ == shown_bound_ ? "" : figures(seconds);
}

std::string SolveProgress::figures(double seconds) {
  shown_cost_ = cost_;
  shown_bound_ = bound_;
  shown_at_ = seconds;
  return fmt::format("# cost {} bound {} gap {:.2f}% t {:.1f}{}\n", *cost_, bound_, gap_percent(*cost_, bound_),
                     seconds, *cost_ == bound_ ? " optimal" : "");
}

}  // namespace shardplan
