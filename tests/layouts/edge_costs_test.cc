#include "layouts/redistribution/search/edge_costs.h"

#include <gtest/gtest.h>

#include <map>

#include "layouts/redistribution/search/common_refinement.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/held_elements.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

/// Counts how often each cost is requested.
class CountedCosts : public CollectiveCosts {
 public:
  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const override {
    ++asked[{kind, axes, group_bytes}];
    return costs_->time(kind, axes, group_bytes);
  }
  mutable std::map<std::tuple<CollectiveKind, std::vector<AxisRef>, Bytes>, int> asked;

 private:
  std::shared_ptr<const CollectiveCosts> costs_ = even_costs(3);
};

// The cost of a step depends on the layouts at its ends, whichever class its graph puts it into.
TEST(EdgeCostsTest, EdgesCostWhatTheirLayoutsSay) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {8, 24};
  const TensorLayout from = parse_layout("[{x}, {y}]", mesh);
  const TensorLayout to = parse_layout("[{y}, {x}]", mesh);
  RedistributionGraph graph(common_spaces(from, to, mesh, shape, Refinement::kFull), shape);
  ASSERT_TRUE(graph.find(from, shape));
  constexpr Bytes kBytes = 8 * 24 * 4;
  const CountedCosts counted;
  EdgeCosts costs(graph, counted, kBytes);
  EXPECT_EQ(costs.tensor_bytes(), kBytes);
  std::size_t num_edges = 0;
  for (std::uint32_t state = 0; state < std::min<std::size_t>(graph.num_states(), 60); ++state) {
    const std::vector<RedistributionEdge> edges(graph.edges(state).begin(), graph.edges(state).end());
    for (const RedistributionEdge& edge : edges) {
      const EdgeClass& group = graph.edge_classes()[edge.edge_class];
      CollectiveStep step;
      step.kind = group.kind;
      step.axes = graph.ordered_axes({state, edge});
      step.before = graph.layout(state, shape);
      step.after = graph.layout(edge.target, shape);
      set_cost(step, kBytes, *even_costs(3));
      ASSERT_EQ(costs[edge], (StepCost{step.time, step.sent}))
          << to_string(step.kind) << " " << to_string(step.before, mesh) << " -> " << to_string(step.after, mesh);
      ASSERT_EQ(fault_of_move(step.kind, step.axes, step.before, step.after, mesh, shape), "")
          << to_string(step.kind) << " " << to_string(step.before, mesh) << " -> " << to_string(step.after, mesh);
      ++num_edges;
    }
  }
  EXPECT_GT(num_edges, 1000u);
  EXPECT_LE(counted.asked.size(), graph.edge_classes().size());
  // Some classes have different meanings and equal costs; none is requested again.
  std::size_t asked = 0;
  for (const auto& [key, count] : counted.asked) asked += static_cast<std::size_t>(count);
  EXPECT_LE(asked, graph.edge_classes().size());
}

}  // namespace
}  // namespace shardplan
