#include "planner/search.h"

#include <algorithm>

namespace shardplan {
namespace {

class DescentSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    check_problem(problem);
    Choice choice;
    for (const NodeId node : problem.nodes.ids()) {
      Bytes best = -1;
      std::size_t at = 0;
      for (std::size_t s = 0; s < problem.num_strategies(node); ++s) {
        Bytes bytes = 0;
        for (const MemoryUse& use : problem.nodes[node].memory) bytes += problem.usage_tables[use.usage].bytes[s];
        if (best < 0 || bytes < best) best = bytes, at = s;
      }
      choice.strategy.push_back(StrategyId(at));
    }
    if (options.start) choice = *options.start;
    Evaluation best = evaluate(problem, choice);
    const auto better = [&](const Evaluation& a, const Evaluation& b) {
      const auto badness = [](const Evaluation& e) {
        return std::pair(e.never_count, std::max<Bytes>(e.worst_excess, 0));
      };
      if (badness(a) != badness(b)) return badness(a) < badness(b);
      return a.value(options.objective) < b.value(options.objective);
    };
    for (bool improved = true; improved;) {
      improved = false;
      for (const NodeId node : problem.nodes.ids()) {
        for (std::size_t s = 0; s < problem.num_strategies(node); ++s) {
          const StrategyId old = choice.strategy[node];
          choice.strategy[node] = StrategyId(s);
          const Evaluation now = evaluate(problem, choice);
          if (better(now, best)) {
            best = now;
            improved = true;
          } else {
            choice.strategy[node] = old;
          }
        }
      }
    }
    PlanResult result;
    if (best.feasible) {
      result.status = PlanStatus::kFeasible;
      result.choice = choice;
      result.cost = best.value(options.objective);
    }
    return result;
  }
};

}  // namespace

std::string_view to_string(PlanStatus status) {
  switch (status) {
    case PlanStatus::kOptimal:
      return "optimal";
    case PlanStatus::kFeasible:
      return "feasible";
    case PlanStatus::kInfeasible:
      return "infeasible";
    case PlanStatus::kNoPlanFound:
      return "no plan found";
  }
  return "";
}

std::unique_ptr<Search> make_search(std::string_view name) {
  if (name == "auto") return std::make_unique<DescentSearch>();
  return nullptr;
}

std::vector<std::string> search_names() { return {"auto"}; }

}  // namespace shardplan
