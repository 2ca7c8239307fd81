#include "solver/search.h"

#include "solver/searches/auto_search.h"
#include "solver/searches/elimination_search.h"
#include "solver/searches/ilp_search.h"
#include "solver/searches/propagation_search.h"

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
  if (name == "elimination") return make_elimination_search();
  if (name == "ilp") return make_ilp_search();
  if (name == "local") return make_auto_search({.presolve = true, .is_exact = false, .has_bound = false});
  if (name == "propagation") return make_propagation_search();
  return nullptr;
}

std::vector<std::string> search_names() { return {"auto", "elimination", "ilp", "local", "propagation"}; }

}  // namespace shardplan
