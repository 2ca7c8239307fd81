#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "solver/contest/contest_problem.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// `shardplan solve PROBLEM.json SECONDS`: the ASPLOS/EuroSys 2025 contest's form (solver/contest/contest_problem.h).
struct SolveArguments {
  std::string problem;
  double seconds = 0;  // wall clock for everything, reading and printing included
  int threads = 2;
  std::uint64_t seed = 0;
  std::uint64_t work_limit = 0;  // units of work; 0: no limit
  std::string search = "auto";
  bool json = false;     // one document instead of the list
  bool verbose = false;  // a table of what each stage did, on standard error
};

std::string list_of(const std::optional<Choice>& choice) {
  std::string text = "[";
  if (choice) {
    for (const StrategyId strategy : choice->strategy) {
      if (text.size() > 1) text += ',';
      text += std::to_string(strategy.value());
    }
  }
  return text + "]";
}

/// As JSON: quotes, backslashes and control characters escaped.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 32) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

double gap_percent(std::int64_t cost, std::int64_t bound) {
  if (cost <= bound) return 0;
  return bound > 0 ? 100.0 * static_cast<double>(cost - bound) / static_cast<double>(bound) : 100;
}

std::string document(const StrategyProblem& problem, const SolveArguments& arguments, const PlanResult& result) {
  std::string text = fmt::format(R"({{"name": {}, "search": {}, "seed": {}, "threads": {}, "status": {}, )",
                                 json_string(problem.name), json_string(arguments.search), arguments.seed,
                                 arguments.threads, json_string(to_string(result.status)));
  if (result.choice) {
    text += fmt::format(R"("cost": {}, "bound": {}, "gap": {:.6f}, "found_by": {}, "seconds_to_best": {:.3f}, )",
                        result.cost, result.lower_bound, gap_percent(result.cost, result.lower_bound) / 100,
                        json_string(result.found_by), result.seconds_to_best);
  } else {
    text += fmt::format(R"("cost": null, "bound": {}, "gap": null, )", result.lower_bound);
  }
  text += R"("statistics": {)";
  for (std::size_t i = 0; i < result.statistics.size(); ++i) {
    text += fmt::format("{}{}: {{", i > 0 ? ", " : "", json_string(result.statistics[i].stage));
    const auto& figures = result.statistics[i].figures;
    for (std::size_t k = 0; k < figures.size(); ++k) {
      text += fmt::format("{}{}: {}", k > 0 ? ", " : "", json_string(figures[k].first), figures[k].second);
    }
    text += "}";
  }
  return text + fmt::format(R"(}}, "solution": {}}})", list_of(result.choice));
}

/// Progress on standard error ("# cost 1240 bound 1180 gap 5.08% t 0.0"), the choice as the last line of standard
/// output, "[0,3,1]", or "[]" if none was found.
int solve(const SolveArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const std::unique_ptr<Search> search = make_search(arguments.search);
  const auto give = [&](const StrategyProblem& problem, const PlanResult& result) {
    print((arguments.json ? document(problem, arguments, result) : list_of(result.choice)) + "\n");
    return result.choice ? kDone : kNoFeasiblePlan;
  };
  const std::optional<StrategyProblem> read =
      read_contest_problem(arguments.problem, Deadline(std::max(arguments.seconds - 0.05, 1e-3), interrupt_token()));
  if (!read) {
    fmt::print(stderr, "# stopped at t {:.1f}, before the problem was read\n", elapsed());
    return give({}, {});
  }
  const StrategyProblem& problem = *read;

  SearchOptions options;
  options.seed = arguments.seed;
  options.threads = arguments.threads;
  options.limits.work = arguments.work_limit;
  options.limits.stop = interrupt_token();
  // Checking and printing the answer takes its time too, in proportion to the problem like reading it.
  if (arguments.seconds > 0)
    options.limits.seconds = std::max(arguments.seconds - elapsed() - 0.05 - 0.1 * elapsed(), 1e-3);
  std::optional<std::int64_t> shown_cost;
  std::int64_t shown_bound = 0;
  double shown_at = 0;
  options.limits.progress = [&](const SearchProgress& progress) {
    if (progress.stage != nullptr && progress.stage->stage == "presolve") {
      const auto figure = [&](std::string_view name) -> std::int64_t {
        for (const auto& [key, value] : progress.stage->figures) {
          if (key == name) return value;
        }
        return 0;
      };
      fmt::print(stderr, "# read {} nodes {} edges, presolve {} nodes {} edges, t {:.1f}\n", problem.nodes.size(),
                 problem.edges.size(), figure("core nodes"), figure("core edges"), elapsed());
    }
    const bool is_better = progress.cost && progress.cost != shown_cost;
    const bool is_proven =
        progress.cost && *progress.cost == progress.lower_bound && progress.lower_bound != shown_bound;
    if (!progress.cost ||
        (!is_better && !is_proven && (progress.lower_bound == shown_bound || elapsed() < shown_at + 1)))
      return;
    shown_cost = progress.cost;
    shown_bound = progress.lower_bound;
    shown_at = elapsed();
    fmt::print(stderr, "# cost {} bound {} gap {:.2f}% t {:.1f}{}\n", *shown_cost, shown_bound,
               gap_percent(*shown_cost, shown_bound), shown_at, *shown_cost == shown_bound ? " optimal" : "");
  };
  const PlanResult result = search->search(problem, options);
  if (result.status == PlanStatus::kInfeasible) fmt::print(stderr, "# no choice is feasible\n");
  if (arguments.verbose) {
    for (const StageStatistics& stage : result.statistics) {
      fmt::print(stderr, "{}\n", stage.stage);
      for (const auto& [name, value] : stage.figures) fmt::print(stderr, "  {:<28} {:>16}\n", name, value);
    }
    if (result.choice) fmt::print(stderr, "found by {} at t {:.1f}\n", result.found_by, result.seconds_to_best);
  }
  return give(problem, result);
}

}  // namespace

Command solve_command() {
  const auto arguments = std::make_shared<SolveArguments>();
  Command command;
  command.name = "solve";
  command.topic = "Search";
  command.summary = "Solve a problem of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism";
  command.description =
      "The last line of standard output is the answer, one strategy per node: [0,3,1]; or [] if none was found. Better "
      "costs and bounds are reported on standard error as they are found.";
  command.examples = {
      {"problem.json 60", "the best answer within a minute"},
      {"problem.json 60 --threads 8 --json", "with eight threads, as one JSON document"},
  };
  command.options = {
      {"",
       {argument("PROBLEM", &arguments->problem, "a problem in the contest's JSON").completed_by(Completion::kFile),
        argument("SECONDS", &arguments->seconds, "time for everything, reading and printing included", positive())}},
      {"How it is searched",
       {option("--search", "NAME", &arguments->search, "the search", one_of(search_names())),
        option("--threads", "N", &arguments->threads, "threads of the search", from_to(1, 256)),
        option("--seed", "N", &arguments->seed, "for random numbers: the same seed gives the same answer"),
        option("--work-limit", "UNITS", &arguments->work_limit,
               "stop after that much work, about a nanosecond a unit; 0: no limit")}},
      {"Output",
       {flag("--json", arguments->json, "print one JSON document"),
        flag("--verbose", arguments->verbose, "print what each stage did on standard error")}},
  };
  command.action = [arguments] { return solve(*arguments); };
  return command;
}

}  // namespace shardplan
