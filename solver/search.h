#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

enum class PlanStatus {
  kOptimal,      // the choice is proven to be the cheapest
  kFeasible,     // a choice, perhaps not the cheapest
  kInfeasible,   // proven: there is no feasible choice
  kNoPlanFound,  // none found within the limits; there may be one
};
std::string_view to_string(PlanStatus status);

/// Named figures of one stage ("presolve", "dual", ...), in the order they were made, for --verbose and --json.
struct StageStatistics {
  std::string stage;
  std::vector<std::pair<std::string, std::int64_t>> figures;
};

/// Reported whenever the best cost or the bound improves, and when a stage has ended that runs but once.
struct SearchProgress {
  std::optional<std::int64_t> cost;
  std::int64_t lower_bound = 0;
  const StageStatistics* stage = nullptr;  // the one that ended, if any
};

/// When to stop. Work decides what is found; time only when it ends.
struct SearchLimits {
  double seconds = 0;                                   // wall clock for the whole call; 0: no limit
  std::uint64_t work = 0;                               // units of work (deterministic); 0: no limit
  double gap = 0;                                       // (cost - bound) / bound that is good enough to stop at
  std::stop_token stop;                                 // Ctrl-C: return the best so far
  std::function<void(const SearchProgress&)> progress;  // may be empty; called from the caller's thread
};

struct SearchOptions {
  Objective objective;
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<Choice> start;  // a known choice to begin with, feasible or not
  SearchLimits limits;
};

struct PlanResult {
  PlanStatus status = PlanStatus::kNoPlanFound;
  std::optional<Choice> choice;  // set exactly when status is kOptimal or kFeasible
  std::int64_t cost = 0;         // the objective's value of `choice`, as `evaluate` gives it on the original problem
  std::int64_t lower_bound = 0;  // no feasible choice has a smaller value; certified
  std::string found_by;          // the stage that found `choice`
  double seconds_to_best = 0;    // wall clock: for standard error only
  std::vector<StageStatistics> statistics;
};

/// One way to search. Every search obeys the same contract (tests/solver/search_contract_test.cc): the choice is
/// feasible and costs what is claimed, the bound is a bound, "optimal" and "infeasible" are true, equal input and
/// options give equal results unless a time limit or stop ended the search.
class Search {
 public:
  virtual ~Search() = default;
  virtual PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const = 0;
};

/// "auto", "elimination", "ilp", "local", "propagation", ...; nullptr if there is none of that name.
std::unique_ptr<Search> make_search(std::string_view name);
/// The names that `make_search` takes, for messages and --help.
std::vector<std::string> search_names();

}  // namespace shardplan
