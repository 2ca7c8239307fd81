#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// The costs of a graph's edges for tensors of one size. The cost of each class of edges is requested once.
class EdgeCosts {
 public:
  EdgeCosts(const RedistributionGraph& graph, const CollectiveCosts& costs, Bytes tensor_bytes)
      : graph_(graph), costs_(costs), tensor_bytes_(tensor_bytes) {}

  const StepCost& operator[](std::uint32_t edge_class);
  const StepCost& operator[](const RedistributionEdge& edge) { return (*this)[edge.edge_class]; }
  Bytes tensor_bytes() const { return tensor_bytes_; }

 private:
  static constexpr Picoseconds kUnknown = -1;

  const RedistributionGraph& graph_;
  const CollectiveCosts& costs_;
  Bytes tensor_bytes_;
  std::vector<StepCost> known_;
};

}  // namespace shardplan
