// How fast and how well are the contest's problems solved? For each file in the folder $IOPDDL: megabytes per second of
// reading, passes of the bound per second, and cost, bound and gap over time up to the contest's limit, with two
// threads; then the time at which the best cost stood. Arguments: seconds per file (default: the contest's limits),
// threads (2).

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "solver/bounds/dual_bound.h"
#include "solver/contest/contest_problem.h"
#include "solver/presolve/presolve.h"
#include "solver/searches/search_list.h"

namespace {

using namespace shardplan;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Instance {
  const char* name;
  double seconds;           // the contest's limit
  std::int64_t best_known;  // published by anyone so far
};
constexpr Instance kInstances[] = {
    {"A", 60, 6'548'641'531}, {"G", 120, 217'039}, {"M", 180, 49'928'460'991}, {"S", 240, 1'511'377'982}};

void run(const Instance& instance, const std::string& path, double seconds, int threads) {
  const double start = now();
  const StrategyProblem problem = read_contest_problem(path);
  const double read = now() - start;
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  fmt::print("{}: {} nodes, {} edges, read in {:.2f} s, {:.0f} MB/s\n", instance.name, problem.nodes.size(),
             problem.edges.size(), read, megabytes / read);
  const Presolve presolve(problem, {}, Deadline(0, {}));
  if (!presolve.is_infeasible() && presolve.core().num_nodes() > 0) {
    DualBound dual(presolve.core());
    dual.pass();
    const double begin = now();
    int passes = 0;
    for (; now() < begin + 0.5; ++passes) dual.pass();
    fmt::print("  {} passes of the bound a second over {} entries\n", static_cast<int>(passes / (now() - begin)),
               presolve.core().sweep_work);
  }
  SearchOptions options;
  options.threads = threads;
  options.limits.seconds = seconds - read;
  double next = 0;
  double to_best_known = -1;
  const double begin = now();
  options.limits.progress = [&](const SearchProgress& progress) {
    if (!progress.cost) return;
    const double time = now() - begin + read;
    if (to_best_known < 0 && *progress.cost <= instance.best_known) to_best_known = time;
    if (time < next) return;
    next = std::max(time * 1.5, 0.5);
    fmt::print("  t {:6.1f}  cost {:>14}  bound {:>14}  gap {:.4f} %\n", time, *progress.cost, progress.lower_bound,
               100.0 * static_cast<double>(*progress.cost - progress.lower_bound) /
                   static_cast<double>(std::max<std::int64_t>(progress.lower_bound, 1)));
  };
  const PlanResult result = make_search("auto")->search(problem, options);
  fmt::print("  t {:6.1f}  cost {:>14}  bound {:>14}  {}, best known {} {}, own best at {:.1f} s by {}\n",
             now() - begin + read, result.cost, result.lower_bound, to_string(result.status), instance.best_known,
             to_best_known < 0 ? "not reached" : fmt::format("reached at {:.1f} s", to_best_known),
             result.seconds_to_best + read, result.found_by);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const folder = std::getenv("IOPDDL");
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  for (const Instance& instance : kInstances) {
    const std::string path =
        fmt::format("{}/asplos-2025-iopddl-{}.json", folder != nullptr ? folder : "iopddl", instance.name);
    if (!std::filesystem::exists(path)) {
      fmt::print("{}: skipped, no {}\n", instance.name, path);
      continue;
    }
    run(instance, path, seconds > 0 ? seconds : instance.seconds, threads);
  }
  return 0;
}
