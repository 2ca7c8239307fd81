#include "layouts/redistribution/uneven_redistribution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/uneven.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/held_elements.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct PlanCase {
  const char* mesh;
  Shape shape;
  const char* from;
  const char* to;
  const char* steps;
  Picoseconds time;  // launch 100, 10 per hop, 1 per byte; elements of 4 bytes
  Bytes peak;
};
const PlanCase kPlans[] = {
    // 10 rows as 3 3 3 1: buffers of 3 rows are gathered, 48 bytes, and trimmed to 40
    {"x=4", {10}, "[{x}]", "[{}]", "all_gather {x}", 100 + 30 + 36, 4 * (3 + 12)},
    {"x=4", {10}, "[{}] unreduced={x}", "[{x}]", "reduce_scatter {x}", 100 + 30 + 36, 4 * (10 + 12)},
    {"x=4", {10}, "[{}] unreduced={x}", "[{}]", "all_reduce {x}", 100 + 60 + 60, 4 * (10 + 10)},
    {"x=4", {10}, "[{}]", "[{x}]", "slice {x}", 0, 4 * (10 + 3)},
    // 10 in 2 is 5 5, in 4 it is 3 3 3 1: a half does not consist of quarters, so all is gathered, then sliced
    {"x=2,y=2", {10}, "[{x, y}]", "[{x}]", "all_gather {x, y}; slice {x}", 100 + 30 + 36, 4 * (3 + 12)},
    // 15 in 4 is 4 4 4 3, in 2 it is 8 7: halves consist of quarters
    {"x=2,y=2", {15}, "[{x, y}]", "[{x}]", "all_gather {y}", 100 + 10 + 16, 4 * (4 + 8)},
};

TEST(UnevenRedistributionTest, TakesTheStepsOfTheTable) {
  for (const PlanCase& c : kPlans) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    const Redistribution plan = uneven_redistribution(parse_layout(c.from, mesh), parse_layout(c.to, mesh), c.shape, 4,
                                                      mesh, *even_costs(2), true, whole_axes(mesh));
    std::string steps;
    for (const CollectiveStep& step : plan.steps) {
      steps += fmt::format("{}{} {}", steps.empty() ? "" : "; ", to_string(step.kind), mesh.to_string(step.axes));
    }
    EXPECT_EQ(steps, c.steps) << c.from << " -> " << c.to;
    EXPECT_EQ(plan.time, c.time) << c.from << " -> " << c.to;
    EXPECT_EQ(plan.peak, c.peak) << c.from << " -> " << c.to;
  }
}

// Where the mesh divides the tensor, the planner of even layouts, which shares no search with this one, finds no more
// expensive path, and the same time if both search the same layouts.
TEST(UnevenRedistributionTest, AgreesWithThePlannerOfEvenLayouts) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {16, 24};
  for (const CostCase& cost : cost_cases()) {
    RedistributionOptions options;
    options.pieces = whole_axes(mesh);
    RedistributionPlanner planner(mesh, cost.costs, options);
    const std::vector<TensorLayout> layouts = all_layouts(mesh, shape, options.pieces, {Reduction::kSum});
    for (const TensorLayout& from : layouts) {
      for (const TensorLayout& to : layouts) {
        const Redistribution plan = uneven_redistribution(from, to, shape, 4, mesh, *cost.costs, true, options.pieces);
        ASSERT_EQ(plan.time, planner.time(from, to, shape, 4))
            << cost.name << ": " << to_string(from, mesh) << " -> " << to_string(to, mesh);
      }
    }
  }
}

// Steps lead from one end to the other, each is possible with what the groups hold, and they add up to the whole.
TEST(UnevenRedistributionTest, StepsLeadFromOneEndToTheOther) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {10, 7};
  for (const char* from_text : {"[{y}, {x}]", "[{x}, {y}]", "[{}, {y}] unreduced={x}", "[{y:(1)2}, {}]"}) {
    for (const char* to_text : {"[{}, {}]", "[{x}, {y:(1)2}]", "[{y}, {}]", "[{}, {x}] unreduced={y}"}) {
      const TensorLayout from = parse_layout(from_text, mesh);
      const TensorLayout to = parse_layout(to_text, mesh);
      const Redistribution plan = uneven_redistribution(from, to, shape, 2, mesh, *even_costs(2), true);
      TensorLayout at = from;
      Picoseconds time = 0;
      Bytes sent = 0;
      for (const CollectiveStep& step : plan.steps) {
        EXPECT_EQ(step.before, at);
        EXPECT_EQ(fault_of_move(step.kind, step.axes, step.before, step.after, mesh, shape), "")
            << from_text << " -> " << to_text << ": " << to_string(step.kind);
        EXPECT_EQ(step.local_shape, local_shape(step.after, shape));
        at = step.after;
        time += step.time;
        sent += step.sent;
      }
      EXPECT_EQ(at, to) << from_text << " -> " << to_text;
      EXPECT_EQ(plan.time, time);
      EXPECT_EQ(plan.sent, sent);
    }
  }
}

TEST(UnevenRedistributionTest, RefusesAxesWithoutACommonRefinement) {
  const DeviceMesh mesh = DeviceMesh::parse("a=6");
  try {
    uneven_redistribution(parse_layout("[{a:(1)2}]", mesh), parse_layout("[{a:(1)3}]", mesh), {7}, 4, mesh,
                          *even_costs(1), true);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.diagnostics().at(0).message,
              "the two layouts cut an axis of a=6 in ways that have no common refinement");
  }
}

}  // namespace
}  // namespace shardplan
