#include "planner/search.h"

#include "planner/auto_search.h"

namespace shardplan {
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
  if (name == "auto") return make_auto_search();
  return nullptr;
}

std::vector<std::string> search_names() { return {"auto"}; }

}  // namespace shardplan
