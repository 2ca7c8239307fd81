// How good are the answers to the contest's problems within half of the contest's time limits, and when are they found?
// For each file in the folder $IOPDDL: megabytes per second of reading, passes of the bound per second, cost, bound and
// gap over time; at the end a table with the seconds to the best cost and to the proof, next to the contest's winner (8
// cores, the full limit) and the best known cost. Arguments: seconds per file (default: half of the limits), threads
// (2), names of the problems to run (default: all).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "solver/bounds/dual_bound.h"
#include "solver/contest/contest_problem.h"
#include "solver/presolve/presolve.h"
#include "solver/searches/search_list.h"

namespace {

using namespace shardplan;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Values that are not published, or not known here, are 0.
struct Instance {
  char name;
  double seconds;           // the contest's limit
  std::int64_t winner;      // of the contest
  std::int64_t best_known;  // from any source so far
};
constexpr Instance kInstances[] = {{'A', 60, 6'569'457'676, 6'548'553'650},
                                   {'B', 60, 0, 0},
                                   {'C', 60, 0, 0},
                                   {'D', 60, 0, 0},
                                   {'E', 60, 0, 0},
                                   {'F', 120, 0, 0},
                                   {'G', 120, 217'039, 217'039},
                                   {'H', 120, 0, 0},
                                   {'I', 120, 0, 0},
                                   {'J', 120, 0, 0},
                                   {'K', 180, 0, 2'118'083'659},
                                   {'L', 180, 0, 0},
                                   {'M', 180, 49'928'460'991, 49'922'744'201},
                                   {'N', 180, 0, 198'826'365'041},
                                   {'O', 180, 0, 0},
                                   {'P', 240, 0, 651'833'115'436},
                                   {'Q', 240, 0, 0},
                                   {'R', 240, 0, 345'222'347'494},
                                   {'S', 240, 1'534'613'444, 1'511'318'300},
                                   {'T', 240, 0, 628'818'149'065},
                                   {'U', 300, 0, 2'151'466'899},
                                   {'V', 300, 0, 0},
                                   {'W', 300, 0, 0},
                                   {'X', 300, 0, 0},
                                   {'Y', 300, 0, 0}};

/// In percent of the bound.
double gap_of(std::int64_t cost, std::int64_t bound) {
  return 100.0 * static_cast<double>(cost - bound) / static_cast<double>(std::max<std::int64_t>(bound, 1));
}

std::string number_or_dash(std::int64_t number) { return number == 0 ? "-" : std::to_string(number); }

/// Runs an instance and returns its row of the table.
std::string run(const Instance& instance, const std::string& path, double seconds, int threads) {
  const double start = now();
  const StrategyProblem problem = read_contest_problem(path);
  const double read = now() - start;
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  fmt::print("{}: {} nodes, {} edges, read in {:.2f} s, {:.0f} MB/s\n", instance.name, problem.nodes.size(),
             problem.edges.size(), read, megabytes / read);
  {
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
  }
  SearchOptions options;
  options.threads = threads;
  options.limits.seconds = seconds - read;
  double next = 0;
  const double begin = now();
  options.limits.progress = [&](const SearchProgress& progress) {
    const double time = now() - begin + read;
    if (!progress.cost || time < next) return;
    next = std::max(time * 1.25, 0.5);
    fmt::print("  t {:6.1f}  cost {:>14}  bound {:>14}  gap {:.4f} %\n", time, *progress.cost, progress.lower_bound,
               gap_of(*progress.cost, progress.lower_bound));
    std::fflush(stdout);
  };
  const PlanResult result = make_search("auto")->search(problem, options);
  const double end = now() - begin + read;
  fmt::print("  t {:6.1f}  {}, found by {}\n", end, to_string(result.status), result.found_by);
  const bool is_proven = result.status == PlanStatus::kOptimal;
  return fmt::format("{:>8} {:>7.0f} {:>14} {:>14} {:>8.4f} {:>10} {:>10} {:>14} {:>14}\n", instance.name, seconds,
                     result.choice ? std::to_string(result.cost) : "none", result.lower_bound,
                     gap_of(result.cost, result.lower_bound),
                     result.choice ? fmt::format("{:.1f}", result.seconds_to_best + read) : "-",
                     is_proven ? fmt::format("{:.1f}", end) : "-", number_or_dash(instance.winner),
                     number_or_dash(instance.best_known));
}

}  // namespace

int main(int argc, char** argv) {
  const char* const folder = std::getenv("IOPDDL");
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string names = argc > 3 ? argv[3] : "";
  std::string table;
  std::string skipped;
  for (const Instance& instance : kInstances) {
    if (!names.empty() && names.find(instance.name) == std::string::npos) continue;
    const std::string path =
        fmt::format("{}/asplos-2025-iopddl-{}.json", folder != nullptr ? folder : "iopddl", instance.name);
    if (std::filesystem::exists(path)) {
      table += run(instance, path, seconds > 0 ? seconds : instance.seconds / 2, threads);
    } else {
      skipped += skipped.empty() ? "skipped for want of a file: " : " ";
      skipped += instance.name;
    }
  }
  fmt::print("\n{:>8} {:>7} {:>14} {:>14} {:>8} {:>10} {:>10} {:>14} {:>14}\n{}{}\n", "instance", "limit s", "cost",
             "bound", "gap %", "s to best", "s to proof", "winner", "best known", table, skipped);
  return 0;
}
