#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "solver/contest_problem.h"
#include "solver/search.h"

namespace shardplan {
namespace {

/// `shardplan solve PROBLEM.json SECONDS`: the ASPLOS/EuroSys 2025 contest's form (solver/contest_problem.h).
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
  if (search == nullptr) {
    const std::string near = nearest_name(arguments.search, search_names());
    throw InputError({Diagnostic{SourcePlace{}, fmt::format("--search {}: there is no such search", arguments.search),
                                 near.empty() ? fmt::format("one of: {}", fmt::join(search_names(), ", "))
                                              : fmt::format("did you mean {}?", near)}});
  }
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

void add_solve_command(CLI::App& app, CommandAction& action) {
  CLI::App& command = *app.add_subcommand("solve", "search a problem in the form of the ASPLOS 2025 contest");
  const auto arguments = std::make_shared<SolveArguments>();
  command.add_option("PROBLEM", arguments->problem, "the contest's JSON")->required();
  command.add_option("SECONDS", arguments->seconds, "time for everything")->required()->check(CLI::PositiveNumber);
  command.add_option("--threads", arguments->threads, "threads to search with")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--seed", arguments->seed, "of random numbers: the same seed, the same answer")
      ->capture_default_str();
  command.add_option("--work-limit", arguments->work_limit,
                     "units of work after which to stop, about a nanosecond each");
  command.add_option("--search", arguments->search, fmt::format("{}", fmt::join(search_names(), ", ")))
      ->capture_default_str();
  command.add_flag("--json", arguments->json, "one JSON document");
  command.add_flag("--verbose", arguments->verbose, "what each stage did, on standard error");
  command.callback([arguments, &action] { action = [arguments] { return solve(*arguments); }; });
}

}  // namespace shardplan
