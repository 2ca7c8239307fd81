#include "layouts/redistribution/search/edge_costs.h"

#include "base/error.h"

namespace shardplan {

const StepCost& EdgeCosts::operator[](std::uint32_t edge_class) {
  if (edge_class >= known_.size()) known_.resize(graph_.edge_classes().size(), {kUnknown, 0});
  StepCost& cost = known_[edge_class];
  if (cost.time != kUnknown) return cost;
  const EdgeClass& group = graph_.edge_classes()[edge_class];
  cost = step_cost(group.kind, graph_.axes(group.space, group.pieces), tensor_bytes_ / group.divisor, costs_);
  SHARDPLAN_CHECK(cost.time >= 0);
  return cost;
}

}  // namespace shardplan
