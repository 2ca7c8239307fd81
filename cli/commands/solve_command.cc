#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "report/solve_report.h"
#include "solver/contest/contest_problem.h"
#include "solver/first_choice.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// `shardplan solve PROBLEM.json SECONDS`: the ASPLOS/EuroSys 2025 contest's format (solver/contest/contest_problem.h).
struct SolveArguments {
  std::string problem;
  double seconds = 0;  // wall clock for everything, including reading and printing
  int threads = 2;
  std::uint64_t seed = 0;
  std::uint64_t work_limit = 0;  // units of work; 0: no limit
  std::string search = "auto";
  bool json = false;     // one document instead of the list
  bool verbose = false;  // a table of each stage's work, on standard error
};

/// Writes to standard error, unchanged.
void report(const std::string& lines) { fmt::print(stderr, "{}", lines); }

/// Progress on standard error ("# cost 1240 bound 1180 gap 5.08% t 0.0"), the choice as the last line of standard
/// output, "[0,3,1]", or "[]" if none was found.
int solve(const SolveArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const std::unique_ptr<Search> search = make_search(arguments.search);
  const auto give = [&](const StrategyProblem& problem, const PlanResult& result) {
    const SolveSettings settings{arguments.search, arguments.seed, arguments.threads};
    print((arguments.json ? solve_json(problem, settings, result) : choice_text(result.choice)) + "\n");
    return result.choice ? kDone : kNoFeasiblePlan;
  };
  const std::optional<StrategyProblem> read =
      read_contest_problem(arguments.problem, Deadline(std::max(arguments.seconds - 0.05, 1e-3), interrupt_token()));
  if (!read) {
    report(fmt::format("# stopped at t {:.1f}, before the problem was read\n", elapsed()));
    return give({}, {});
  }
  const StrategyProblem& problem = *read;

  SearchOptions options;
  options.seed = arguments.seed;
  options.threads = arguments.threads;
  options.limits.work = arguments.work_limit;
  options.limits.stop = interrupt_token();
  // Checking and printing the answer and freeing memory also take time in proportion to the problem, like reading it.
  if (arguments.seconds > 0)
    options.limits.seconds = std::max(arguments.seconds - elapsed() - 0.05 - 0.5 * elapsed(), 1e-3);
  SolveProgress progress(problem.nodes.size(), problem.edges.size());
  PlanResult first = first_answer(problem, options.objective);
  first.seconds_to_best = elapsed();
  if (first.choice) report(progress.lines({first.cost, 0, nullptr}, elapsed()));
  options.limits.progress = [&](const SearchProgress& news) { report(progress.lines(news, elapsed())); };
  PlanResult result;
  try {
    result = better_answer(first, search->search(problem, options));
  } catch (const InputError& error) {  // the problem breaks an invariant: the message gets the file's name
    throw InputError({arguments.problem, 0, 0}, "{}", error.diagnostics().front().message);
  }
  report(progress.last_line(problem, result, elapsed()));
  if (arguments.verbose) report(solve_statistics(result));
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
      "The last line of standard output is the answer, one strategy per node: [0,3,1]; or [] if none was found. "
      "Improved costs and bounds are reported on standard error. Costs of 2^58 or more are forbidden.";
  command.examples = {
      {"problem.json 60", "the best answer within a minute"},
      {"problem.json 60 --threads 8 --json", "with eight threads, as one JSON document"},
  };
  command.options = {
      {"",
       {argument("PROBLEM", &arguments->problem, "a problem in the contest's JSON").completed_by(Completion::kFile),
        argument("SECONDS", &arguments->seconds, "time for everything, reading and printing included", positive())}},
      {"Search",
       {option("--search", "NAME", &arguments->search, "the search", one_of(search_names())),
        option("--threads", "N", &arguments->threads, "threads of the search", from_to(1, 256)),
        option("--seed", "N", &arguments->seed, "for random numbers: the same seed gives the same answer"),
        option("--work-limit", "UNITS", &arguments->work_limit,
               "stop after this much work, about a nanosecond per unit; 0: no limit")}},
      {"Output",
       {flag("--json", arguments->json, "print one JSON document"),
        flag("--verbose", arguments->verbose, "print statistics of each stage on standard error")}},
  };
  command.action = [arguments] { return solve(*arguments); };
  return command;
}

}  // namespace shardplan
