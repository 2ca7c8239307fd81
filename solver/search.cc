#include "solver/search.h"

namespace shardplan {

std::string_view to_string(Limit limit) {
  switch (limit) {
    case Limit::kGap:
      return "gap";
    case Limit::kWork:
      return "work";
    case Limit::kTime:
      return "time";
    case Limit::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::string_view to_string(PlanStatus status) {
  switch (status) {
    case PlanStatus::kOptimal:
      return "optimal";
    case PlanStatus::kFeasible:
      return "feasible";
    case PlanStatus::kInfeasible:
      return "infeasible";
    case PlanStatus::kNoPlanFound:
      return "none_found";
  }
  return "";
}

}  // namespace shardplan
