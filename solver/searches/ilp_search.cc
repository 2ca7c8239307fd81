#include "solver/searches/ilp_search.h"

#include <glpk.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <limits>
#include <mutex>

#include "solver/core/move_state.h"
#include "solver/presolve/presolve.h"

namespace shardplan {
namespace {

constexpr std::size_t kLargestPairs = 100'000;
constexpr std::uint64_t kWorkPerEvent = 1'000'000;
constexpr double kLargestCost = 1e12;  // beyond, GLPK's tolerances tell costs apart no more

/// GLPK reports faults of its own by a hook that must not return; this one leaves by longjmp, past GLPK's frames only.
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

/// Not inlined into the function that can be left by longjmp: its variables would be at risk.
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
      // Scaled: rows of bytes in the billions would drown the tolerances. Left a little loose; `evaluate` decides.
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

/// What GLPK came to; nothing if it failed.
struct Answer {
  bool is_optimal = false;
  bool is_infeasible = false;
  std::optional<CoreChoice> choice;
};

/// When GLPK must end: at the deadline, or after so many events of its branch and bound.
struct Limits {
  const Deadline* deadline;
  std::uint64_t events_left;
};

void stop_when_over(glp_tree* tree, void* info) {
  Limits& limits = *static_cast<Limits*>(info);
  if (limits.events_left == 0 || limits.deadline->is_over()) {
    glp_ios_terminate(tree);
  } else {
    --limits.events_left;
  }
}

Answer solve(const CoreProblem& core, Limits limits, double seconds) {
  // GLPK's environment is per thread, but its builds differ in that; one at a time is safe with all.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Answer answer;
  glp_term_out(GLP_OFF);
  Programme programme;
  Escape fault;
  glp_error_hook(escape, &fault);
  if (setjmp(fault.place) != 0) {
    glp_error_hook(nullptr, nullptr);
    programme.problem = glp_create_prob();  // the environment was freed with the old one
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
    check_problem(problem);
    PlanResult result = search_anew(problem, options);
    if (!options.start) return result;
    const Evaluation start = evaluate(problem, *options.start);
    const std::int64_t cost = start.value(options.objective);
    if (!start.feasible || (result.choice && result.cost <= cost)) return result;
    result.choice = options.start;
    result.cost = cost;
    result.lower_bound = std::min(result.lower_bound, cost);
    result.status = result.lower_bound == cost ? PlanStatus::kOptimal : PlanStatus::kFeasible;
    result.found_by = "start";
    result.seconds_to_best = 0;
    return result;
  }

 private:
  static PlanResult search_anew(const StrategyProblem& problem, const SearchOptions& options) {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    PlanResult result;
    const Presolve presolve(problem, options.objective, deadline);
    result.statistics.push_back(presolve.statistics());
    if (presolve.is_infeasible()) {
      if (presolve.is_infeasibility_certain()) result.status = PlanStatus::kInfeasible;
      return result;
    }
    const CoreProblem& core = presolve.core();
    result.lower_bound = presolve.constant_cost();
    Answer answer;
    if (core.num_nodes() == 0) {
      answer = {true, false, CoreChoice()};
    } else {
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
      if (pairs / 2 > kLargestPairs || bytes > 20 * kLargestPairs) return result;
      const std::uint64_t events =
          options.limits.work > 0 ? options.limits.work / kWorkPerEvent + 1 : std::numeric_limits<std::uint64_t>::max();
      answer = solve(core, {&deadline, events},
                     options.limits.seconds > 0 ? options.limits.seconds - deadline.elapsed() : 0);
      result.statistics.push_back({"ilp", {{"pairs", static_cast<std::int64_t>(pairs / 2)}}});
    }
    // GLPK computes with tolerances: what it calls optimal is so where they cannot hide a whole unit.
    const bool is_trusted = core.big_m < kLargestCost && presolve.is_exact();
    if (answer.choice) {
      const Choice choice = presolve.expand(*answer.choice);
      const Evaluation evaluation = evaluate(problem, choice);
      if (evaluation.feasible) {
        result.choice = choice;
        result.cost = evaluation.value(options.objective);
        result.found_by = "ilp";
        result.seconds_to_best = deadline.elapsed();
        const bool is_proven = core.num_nodes() == 0 || (answer.is_optimal && is_trusted);
        if (is_proven) result.lower_bound = result.cost;
        result.status = result.lower_bound == result.cost ? PlanStatus::kOptimal : PlanStatus::kFeasible;
      }
    } else if (answer.is_infeasible && is_trusted && presolve.is_infeasibility_certain()) {
      result.status = PlanStatus::kInfeasible;
    }
    return result;
  }
};

}  // namespace

std::unique_ptr<Search> make_ilp_search() { return std::make_unique<IlpSearch>(); }

}  // namespace shardplan
