#include "solver/searches/ilp_search.h"

#include <fmt/format.h>
#include <glpk.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <limits>
#include <mutex>

#include "solver/core/core_problem.h"
#include "solver/incumbent.h"
#include "solver/presolve/presolve.h"

// All other searches work on a core with our own algorithms; this one hands the core to an independent solver, so that
// their answers can be compared with one that shares no code with them beyond presolve. The program is the usual one
// for pairwise costs (Alpa and AutoParallel solve the same): a 0/1 variable for each value, a variable for each pair of
// values of an edge, whose sums over rows and columns are the values' variables, and a row of bytes for each time. Pair
// variables may be continuous: with integral values they are integral by themselves.
//
// It has as many columns as the matrices have entries, so it suits problems of some ten thousand pairs, not models.
// GLPK is a C library with an error hook that must not return, and with tolerances: the hook is left by longjmp, and
// the tolerances limit which results are trusted (`is_trusted`).

namespace shardplan {
namespace {

constexpr std::size_t kLargestPairs = 100'000;
constexpr std::size_t kLargestUsages = 20 * kLargestPairs;  // bytes of a strategy at a time
constexpr std::uint64_t kWorkPerEvent = 1'000'000;
constexpr double kLargestCost = 1e12;  // above this, GLPK's tolerances no longer distinguish costs

/// GLPK reports internal errors by a hook that must not return; this one leaves by longjmp, past GLPK's frames only.
struct Escape {
  std::jmp_buf place;
};
void escape(void* info) { std::longjmp(static_cast<Escape*>(info)->place, 1); }

struct Programme {
  glp_prob* problem = glp_create_prob();
  std::vector<int> rows{0}, columns{0};  // GLPK counts from one
  std::vector<double> coefficients{0};

  ~Programme() { glp_delete_prob(problem); }
  void entry(int row, int column, double coefficient) {
    rows.push_back(row);
    columns.push_back(column);
    coefficients.push_back(coefficient);
  }
};

/// Not inlined into the function that can be left by longjmp, which could corrupt its variables.
[[gnu::noinline]] void build(const CoreProblem& core, Programme& programme) {
  glp_prob* const lp = programme.problem;
  glp_set_obj_dir(lp, GLP_MIN);
  glp_add_cols(lp, static_cast<int>(core.costs.size()));
  const auto column_of = [&](std::size_t node, std::size_t value) {
    return static_cast<int>(core.first_value[node] + value) + 1;
  };
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    const int row = glp_add_rows(lp, 1);
    glp_set_row_bnds(lp, row, GLP_FX, 1, 1);
    for (std::size_t value = 0; value < core.num_values(node); ++value) {
      const int column = column_of(node, value);
      glp_set_col_kind(lp, column, GLP_BV);
      glp_set_obj_coef(lp, column, core.costs[core.first_value[node] + value]);
      programme.entry(row, column, 1);
    }
  }
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const CoreNeighbour& neighbour = core.neighbours[slot];
      if (neighbour.node < node) continue;
      const int own = static_cast<int>(core.num_values(node));
      const int others = static_cast<int>(core.num_values(neighbour.node));
      const int row = glp_add_rows(lp, own + others);
      const int column = glp_add_cols(lp, own * others);
      for (int i = 0; i < own + others; ++i) {
        glp_set_row_bnds(lp, row + i, GLP_FX, 0, 0);
        programme.entry(row + i,
                        i < own ? column_of(node, static_cast<std::size_t>(i))
                                : column_of(neighbour.node, static_cast<std::size_t>(i - own)),
                        -1);
      }
      for (int a = 0; a < own; ++a) {
        for (int b = 0; b < others; ++b) {
          const int pair = column + a * others + b;
          const double cost = core.edge_cost(neighbour, static_cast<std::size_t>(a), static_cast<std::size_t>(b));
          glp_set_obj_coef(lp, pair, cost >= core.big_m ? 0 : cost);
          if (cost >= core.big_m) {
            glp_set_col_bnds(lp, pair, GLP_FX, 0, 0);
          } else {
            glp_set_col_bnds(lp, pair, GLP_LO, 0, 0);
          }
          programme.entry(row + a, pair, 1);
          programme.entry(row + own + b, pair, 1);
        }
      }
    }
  }
  if (!core.limits.empty()) {
    const int first = glp_add_rows(lp, static_cast<int>(core.limits.size()));
    for (std::size_t time = 0; time < core.limits.size(); ++time) {
      // Scaled, since rows of bytes in the billions would exceed the tolerances, and slightly loosened; `evaluate`
      // decides.
      glp_set_row_bnds(lp, first + static_cast<int>(time), GLP_UP, 0, core.limits[time] == 0 ? 0 : 1);
    }
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        const CoreSegment& segment = core.segments[at];
        for (std::uint32_t time = segment.begin; time < segment.end; ++time) {
          const double limit = core.limits[time] == 0 ? 1 : static_cast<double>(core.limits[time]);
          for (std::size_t value = 0; value < core.num_values(node); ++value) {
            const double bytes = static_cast<double>(core.bytes[segment.bytes + value]);
            if (bytes != 0) programme.entry(first + static_cast<int>(time), column_of(node, value), bytes / limit);
          }
        }
      }
    }
  }
  glp_load_matrix(lp, static_cast<int>(programme.rows.size()) - 1, programme.rows.data(), programme.columns.data(),
                  programme.coefficients.data());
}

/// GLPK's result; nothing if it failed.
struct Answer {
  bool is_optimal = false;
  bool is_infeasible = false;
  std::optional<CoreChoice> choice;
  std::optional<Limit> stopped_by;
};

/// When GLPK must end: at the deadline, or after a number of events of its branch and bound.
struct EventLimits {
  const Deadline* deadline;
  std::uint64_t events_left;
  std::optional<Limit> reached;
};

void stop_when_over(glp_tree* tree, void* info) {
  EventLimits& limits = *static_cast<EventLimits*>(info);
  limits.reached = limits.events_left == 0 ? Limit::kWork : limits.deadline->reached();
  if (limits.reached) {
    glp_ios_terminate(tree);
  } else {
    --limits.events_left;
  }
}

Answer solve(const CoreProblem& core, EventLimits limits, double seconds) {
  // GLPK's environment is per thread in some builds only; one at a time is safe with all of them.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Answer answer;
  glp_term_out(GLP_OFF);
  Programme programme;
  Escape fault;
  glp_error_hook(escape, &fault);
  if (setjmp(fault.place) != 0) {
    glp_error_hook(nullptr, nullptr);
    programme.problem = glp_create_prob();  // the environment was freed together with the old one
    return answer;
  }
  build(core, programme);
  glp_iocp options;
  glp_init_iocp(&options);
  options.msg_lev = GLP_MSG_OFF;
  options.presolve = GLP_ON;
  options.gmi_cuts = GLP_ON;
  options.mir_cuts = GLP_ON;
  options.cov_cuts = GLP_ON;
  options.cb_func = stop_when_over;
  options.cb_info = &limits;
  if (seconds > 0) options.tm_lim = static_cast<int>(std::clamp(seconds * 1000, 1.0, 2e9));
  const int code = glp_intopt(programme.problem, &options);
  glp_error_hook(nullptr, nullptr);
  const int status = glp_mip_status(programme.problem);
  answer.is_infeasible = code == GLP_ENOPFS || (code == 0 && status == GLP_NOFEAS);
  answer.is_optimal = code == 0 && status == GLP_OPT;
  answer.stopped_by = code == GLP_ETMLIM ? Limit::kTime : limits.reached;
  if (status == GLP_OPT || status == GLP_FEAS) {
    answer.choice.emplace(core.num_nodes(), 0);
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t value = 0; value < core.num_values(node); ++value) {
        if (glp_mip_col_val(programme.problem, static_cast<int>(core.first_value[node] + value) + 1) > 0.5)
          (*answer.choice)[node] = value;
      }
    }
  }
  return answer;
}

class IlpSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    Incumbent incumbent(problem, options, deadline);
    const std::optional<Limit> limit = solve_reduced(problem, options, deadline, incumbent);
    // GLPK accepts no start; a known choice counts at the end.
    if (options.start) incumbent.offer(*options.start, "start");
    return incumbent.result(limit);
  }

 private:
  static std::optional<Limit> solve_reduced(const StrategyProblem& problem, const SearchOptions& options,
                                            const Deadline& deadline, Incumbent& incumbent) {
    const Presolve presolve(problem, options.objective, deadline);
    incumbent.report(&presolve.statistics());
    incumbent.add(presolve.statistics());
    if (presolve.is_infeasible()) {
      if (!presolve.is_infeasibility_certain()) return deadline.reached();
      incumbent.set_infeasible();
      return std::nullopt;
    }
    const CoreProblem& core = presolve.core();
    incumbent.raise_bound(presolve.constant_cost());
    if (core.num_nodes() == 0) {
      if (incumbent.offer(presolve.expand({}), "ilp")) incumbent.raise_bound(*incumbent.cost());
      return std::nullopt;
    }
    const std::optional<std::size_t> pairs = programme_size(core);
    if (!pairs) {
      incumbent.set_obstacle(fmt::format(
          "the integer program would have more than {} pairs of strategies, or {} usages at a time, which is too large",
          kLargestPairs, kLargestUsages));
      return std::nullopt;
    }
    const std::uint64_t events =
        options.limits.work > 0 ? options.limits.work / kWorkPerEvent + 1 : std::numeric_limits<std::uint64_t>::max();
    const Answer answer = solve(core, {&deadline, events, std::nullopt},
                                options.limits.seconds > 0 ? options.limits.seconds - deadline.elapsed() : 0);
    incumbent.add({"ilp", {{"pairs", static_cast<std::int64_t>(*pairs)}}});
    // GLPK computes with tolerances: what it calls optimal is optimal if they cannot hide a whole unit.
    const bool is_trusted = core.big_m < kLargestCost && presolve.is_exact();
    if (!answer.choice && !answer.stopped_by) incumbent.set_obstacle("the integer program was not solved");
    if (answer.choice) {
      const bool is_offered = incumbent.offer(presolve.expand(*answer.choice), "ilp");
      if (is_offered && answer.is_optimal && is_trusted) incumbent.raise_bound(*incumbent.cost());
    } else if (answer.is_infeasible && is_trusted && presolve.is_infeasibility_certain()) {
      incumbent.set_infeasible();
    }
    return answer.stopped_by;
  }

  /// The number of pairs of values of the program; nothing if it is too large for GLPK.
  static std::optional<std::size_t> programme_size(const CoreProblem& core) {
    std::size_t pairs = 0;
    std::size_t bytes = 0;
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
        pairs += core.num_values(node) * core.num_values(core.neighbours[slot].node);
      }
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        bytes += (core.segments[at].end - core.segments[at].begin) * core.num_values(node);
      }
    }
    pairs /= 2;  // each was counted from both ends
    if (pairs > kLargestPairs || bytes > kLargestUsages) return std::nullopt;
    return pairs;
  }
};

}  // namespace

std::unique_ptr<Search> make_ilp_search() { return std::make_unique<IlpSearch>(); }

}  // namespace shardplan
