#include "simulator/execute/reach.h"

#include <gtest/gtest.h>

#include "layouts/redistribution/redistribution_planner.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/held_elements.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kSlice,     CollectiveKind::kAllGather,
                                     CollectiveKind::kAllToAll,  CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllReduce, CollectiveKind::kCollectivePermute,
                                     CollectiveKind::kToPartial};

// Every step that the planner makes can be run.
TEST(ReachTest, PlannedStepsAreWithinReach) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {8, 24};
  RedistributionPlanner planner(mesh, even_costs(2));
  constexpr std::uint64_t kSeed = 67;
  Random random(kSeed);
  for (int i = 0; i < 200; ++i) {
    const TensorLayout from = random_layout(mesh, shape, random, true, true);
    const TensorLayout to = random_layout(mesh, shape, random, true, true);
    for (const CollectiveStep& step : planner.plan(from, to, shape, 4).steps) {
      EXPECT_EQ(check_reach(step, mesh, shape), "")
          << to_string(step.kind) << " " << to_string(step.before, mesh) << " -> " << to_string(step.after, mesh);
    }
  }
}

// All steps between two layouts, sensible or not: an accepted one only moves what the groups hold.
TEST(ReachTest, WhatIsAcceptedCanBeRun) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  const Shape shape = {4, 4};
  const std::vector<TensorLayout> layouts = all_layouts(mesh, shape, whole_axes(mesh), {Reduction::kSum});
  std::map<CollectiveKind, std::size_t> accepted, refused;
  for (const TensorLayout& before : layouts) {
    for (const TensorLayout& after : layouts) {
      for (const std::vector<AxisRef>& axes :
           {std::vector<AxisRef>{mesh.whole(0)}, {mesh.whole(1)}, {mesh.whole(0), mesh.whole(1)}}) {
        for (const CollectiveKind kind : kKinds) {
          CollectiveStep step;
          step.kind = kind;
          step.axes = axes;
          step.before = before;
          step.after = after;
          const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll;
          for (std::size_t d = 0; d < (gathers ? shape.size() : 1); ++d) {
            step.from_dim = d;
            const bool is_right = check_reach(step, mesh, shape).empty();
            ++(is_right ? accepted : refused)[kind];
            if (!is_right) continue;
            const std::vector<Elements> had = held_elements(before, mesh, shape);
            const std::vector<Elements> has = held_elements(after, mesh, shape);
            for (const std::vector<std::int64_t>& group : mesh.groups(axes)) {
              std::set<std::int64_t> together;
              for (const std::int64_t device : group) {
                const Elements& own = had[static_cast<std::size_t>(device)];
                together.insert(own.begin(), own.end());
              }
              for (const std::int64_t device : group) {
                for (const std::int64_t element : has[static_cast<std::size_t>(device)]) {
                  const Elements& own = had[static_cast<std::size_t>(device)];
                  const bool is_own = std::binary_search(own.begin(), own.end(), element);
                  const bool makes_zeros = kind == CollectiveKind::kToPartial;
                  const bool stays = kind == CollectiveKind::kSlice || kind == CollectiveKind::kReduceScatter ||
                                     kind == CollectiveKind::kAllReduce;
                  ASSERT_TRUE(makes_zeros || (stays ? is_own : together.contains(element)))
                      << to_string(kind) << " over " << mesh.to_string(axes) << " " << to_string(before, mesh) << " -> "
                      << to_string(after, mesh) << " at " << device;
                }
              }
            }
          }
        }
      }
    }
  }
  for (const CollectiveKind kind : kKinds) {
    EXPECT_GT(accepted[kind], 5u) << to_string(kind);
    EXPECT_GT(refused[kind], 100u) << to_string(kind);
  }
}

TEST(ReachTest, SaysWhatIsWrong) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  const auto fault = [&](CollectiveKind kind, const char* axis, const char* before, const char* after) {
    CollectiveStep step;
    step.kind = kind;
    step.axes = {*mesh.find(axis)};
    step.from_dim = 0;
    step.before = parse_layout(before, mesh);
    step.after = parse_layout(after, mesh);
    return check_reach(step, mesh, {4, 4});
  };
  EXPECT_EQ(fault(CollectiveKind::kAllGather, "x", "[{x}, {}]", "[{}, {}]"), "");
  EXPECT_EQ(fault(CollectiveKind::kAllGather, "y", "[{x}, {}]", "[{}, {}]"),
            "a device would hold what its group does not");
  EXPECT_EQ(fault(CollectiveKind::kAllReduce, "x", "[{}, {}] unreduced={x, y}", "[{}, {}]"),
            "4 summands would become 1");
  EXPECT_EQ(fault(CollectiveKind::kAllReduce, "x", "[{}, {}] unreduced={x, y}", "[{}, {}] unreduced={y}"), "");
}

}  // namespace
}  // namespace shardplan
