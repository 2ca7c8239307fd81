#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "solver/search.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// The output of `shardplan solve` (solver/contest/contest_problem.h describes the problem).

/// "[0,3,1]", one strategy per node; "[]" if there is none.
std::string choice_text(const std::optional<Choice>& choice);

/// The settings of the search.
struct SolveSettings {
  std::string search = "auto";
  std::uint64_t seed = 0;
  int threads = 1;
};
/// The answer with its cost, its bound and the figures of each stage, as one JSON document on one line.
std::string solve_json(const StrategyProblem& problem, const SolveSettings& settings, const PlanResult& result);

/// What each stage did, and which one found the answer.
std::string solve_statistics(const PlanResult& result);

/// Prints progress as lines: what presolve left, then "# cost 1240 bound 1180 gap 5.08% t 0.0" for every better cost,
/// and at most once a second for better bounds.
class SolveProgress {
 public:
  SolveProgress(std::size_t nodes, std::size_t edges) : nodes_(nodes), edges_(edges) {}
  /// Empty if there is nothing to report. `seconds` since the start.
  std::string lines(const SearchProgress& progress, double seconds);
  /// The last line: the answer's figures, if they are not those of the line before, or why there is no answer.
  std::string last_line(const StrategyProblem& problem, const PlanResult& result, double seconds);

 private:
  std::string figures(double seconds);

  std::size_t nodes_;
  std::size_t edges_;
  std::optional<std::int64_t> cost_, shown_cost_;
  std::int64_t bound_ = 0, shown_bound_ = 0;
  double shown_at_ = 0;
};

}  // namespace shardplan
