#include "layouts/redistribution/redistribution_planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

std::vector<std::string> kinds(const Redistribution& plan) {
  std::vector<std::string> result;
  for (const CollectiveStep& step : plan.steps) result.emplace_back(to_string(step.kind));
  return result;
}

TEST(RedistributionPlannerTest, TheExampleOfTheManual) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  RedistributionPlanner planner(mesh, even_costs(2));
  const Redistribution& plan =
      planner.plan(parse_layout("[{x}, {y}]", mesh), parse_layout("[{y}, {x}]", mesh), {16, 8}, 4);
  ASSERT_EQ(kinds(plan), (std::vector<std::string>{"all_to_all", "collective_permute"}));
  EXPECT_EQ(mesh.to_string(plan.steps[0].axes), "{y:(2)2}");
  EXPECT_EQ(plan.steps[0].from_dim, 1u);
  EXPECT_EQ(plan.steps[0].to_dim, 0u);
  EXPECT_EQ(to_string(plan.steps[0].after, mesh), "[{x, y:(2)2}, {y:(1)2}]");
  EXPECT_EQ(plan.steps[0].local_shape, (Shape{4, 4}));
  EXPECT_EQ(plan.steps[0].sent, 32);
  EXPECT_EQ(plan.steps[0].time, 100 + 10 + 32);
  EXPECT_EQ(mesh.to_string(plan.steps[1].axes), "{x, y:(1)2}");
  EXPECT_EQ(plan.steps[1].time, 100 + 10 + 64);
  EXPECT_EQ(plan.sent, 96);
  EXPECT_EQ(plan.peak, 128);
}

/// Table 1.F with AllToAll, and the requirements on a single collective.
struct StepsCase {
  const char* name;
  const char* mesh;
  Shape shape;
  const char* from;
  const char* to;
  std::vector<std::string> kinds;
};
const StepsCase kSteps[] = {
    {"X1", "d=8", {512, 1024}, "[{d}, {}]", "[{}, {}]", {"all_gather"}},
    {"X3", "d=8", {512, 1024}, "[{}, {}]", "[{d}, {}]", {"slice"}},
    {"X5", "d=8", {512, 1024}, "[{d}, {}]", "[{}, {d}]", {"all_to_all"}},
    {"X7", "a=2,b=4", {64, 64}, "[{a}, {b}]", "[{a}, {}]", {"all_gather"}},
    {"X9", "a=2,b=4", {64, 64}, "[{a}, {}]", "[{a}, {b}]", {"slice"}},
    {"X17", "a=16", {512, 1024}, "[{a}, {}]", "[{}, {a}]", {"all_to_all"}},
    {"two_axes_in_one_gather", "a=2,b=4", {64, 64}, "[{a, b}, {}]", "[{}, {}]", {"all_gather"}},
    {"two_axes_in_one_all_to_all", "a=2,b=4", {64, 64}, "[{a, b}, {}]", "[{}, {a, b}]", {"all_to_all"}},
    {"two_axes_in_one_all_reduce", "a=2,b=4", {64}, "[{}] unreduced={a, b}", "[{}]", {"all_reduce"}},
    {"two_axes_in_one_reduce_scatter", "a=2,b=4", {64}, "[{}] unreduced={a, b}", "[{b, a}]", {"reduce_scatter"}},
    {"two_slices_of_a_dimension_are_one", "a=2,b=4", {64}, "[{}]", "[{b, a}]", {"slice"}},
    {"two_slices_of_two_dimensions", "a=2,b=4", {64, 64}, "[{}, {}]", "[{b}, {a}]", {"slice", "slice"}},
    {"order", "a=2,b=4", {64}, "[{a, b}]", "[{b, a}]", {"collective_permute"}},
    {"replicated_to_sum", "a=2,b=4", {64}, "[{}]", "[{}] unreduced={a, b}", {"to_partial"}},
    {"sharded_to_max", "a=2", {64}, "[{a}]", "[{}] unreduced={a} unreduced_kind=max", {"to_partial"}},
    {"sum_to_max",
     "a=2",
     {64},
     "[{}] unreduced={a}",
     "[{}] unreduced={a} unreduced_kind=max",
     {"reduce_scatter", "to_partial"}},
    {"nothing_to_do", "a=2,b=4", {64}, "[{b:(1)2, b:(2)2}]", "[{b}]", {}},
    {"part_is_all_that_is_cut", "a=2", {8}, "[(2:{}, 4:{a})]", "[{}]", {"all_gather"}},
    {"no_common_refinement", "a=6", {36}, "[{a:(1)2}]", "[{a:(1)3}]", {"slice", "all_gather"}},
};
TEST(RedistributionPlannerTest, TakesTheStepsThatAreEnough) {
  for (const StepsCase& c : kSteps) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
    const Redistribution& plan = planner.plan(parse_layout(c.from, mesh), parse_layout(c.to, mesh), c.shape, 4);
    EXPECT_EQ(kinds(plan), c.kinds) << c.name;
  }
}

// A permute takes one hop, an exchange among three takes two: permutes around an exchange of two beat one permute and
// an exchange of three.
TEST(RedistributionPlannerTest, TwoPermutesCanBeatOne) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=3,z=2");
  const auto costs = std::make_shared<TestCosts>(1000, std::vector<TestCosts::Axis>(3, {50, 1}));
  RedistributionPlanner planner(mesh, costs);
  const Redistribution& plan =
      planner.plan(parse_layout("[{y, x}, {z}]", mesh), parse_layout("[{x}, {y, z}]", mesh), {24, 36}, 4);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"collective_permute", "all_to_all", "collective_permute"}));
  EXPECT_EQ(plan.time, 1338 + 1292 + 1338);
}

TEST(RedistributionPlannerTest, AnswersDoNotDependOnWhatWasAskedBefore) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2,z=2");
  const Shape shape = {16, 16};
  const auto layouts = all_layouts(mesh, shape, whole_axes(mesh), {});
  RedistributionPlanner forwards(mesh, even_costs(3));
  RedistributionPlanner backwards(mesh, even_costs(3));
  for (std::size_t i = layouts.size(); i-- > 0;) {
    for (std::size_t j = layouts.size(); j-- > 0; j -= std::min<std::size_t>(j, 2))
      backwards.plan(layouts[i], layouts[j], shape, 4);
  }
  const auto text_of = [&](const Redistribution& plan) {
    std::string text;
    for (const CollectiveStep& step : plan.steps) {
      text += fmt::format("{} {} {}; ", to_string(step.kind), mesh.to_string(step.axes), to_string(step.after, mesh));
    }
    return text;
  };
  for (const TensorLayout& from : layouts) {
    for (const TensorLayout& to : layouts) {
      const Redistribution& plan = forwards.plan(from, to, shape, 4);
      ASSERT_EQ(text_of(plan), text_of(backwards.plan(from, to, shape, 4)));
      ASSERT_EQ(plan.time, backwards.time(from, to, shape, 4));
    }
  }
}

// Tensors with many factors on meshes with many axes: more digits and states than a graph may have.
TEST(RedistributionPlannerTest, LargePairsEndWhereTheyShouldAndKeepTheBound) {
  struct Case {
    const char* mesh;
    Shape shape;
  };
  const Case cases[] = {
      {"a=16,b=8,c=4,d=6", {12 << 10, 5 << 10, 21 << 8, 512}},
      {"a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2", {1 << 12, 3 << 10, 1 << 14, 9 << 8}},
      {"a=12,b=30,c=8", {5040, 720, 2310, 256}},
      {"a=6,b=6", {36, 36}},
      {"a=12,b=6", {72, 72, 6}},
  };
  Random random(47);
  for (const auto& [text, shape] : cases) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
    for (int i = 0; i < 40; ++i) {
      const TensorLayout from = random_layout(mesh, shape, random, true, i % 2 == 0);
      const TensorLayout to = random_layout(mesh, shape, random, true, i % 2 == 0);
      const Redistribution& plan = planner.plan(from, to, shape, 4);
      const std::string name = to_string(from, mesh) + " -> " + to_string(to, mesh);
      const TensorLayout* at = &plan.from;
      for (const CollectiveStep& step : plan.steps) {
        ASSERT_EQ(step.before, *at) << name;
        ASSERT_EQ(check_layout(step.after, mesh, shape), "") << name;
        at = &step.after;
      }
      ASSERT_EQ(*at, to) << name;
      EXPECT_FALSE(exceeds_larger_end(plan)) << name;
    }
  }
}

/// Ends without a common refinement: a path within the bound must park pieces in other axes or dimensions. If the whole
/// tensor is occupied there is none, and the plan says so.
struct UnrefinedCase {
  const char* mesh;
  Shape shape;
  const char* from;
  const char* to;
  bool exceeds;
};
const UnrefinedCase kUnrefined[] = {
    {"a=6,b=6", {36, 36}, "[{a:(3)2, b:(2)3}, {a:(1)3}]", "[{a:(1)2}, {b}] unreduced={a:(2)3}", false},
    {"a=6,b=6", {36, 36}, "[(2:{}, 18:{b}), {}]", "[{a:(1)3}, {a:(3)2}]", false},
    {"a=12,b=6", {72, 72, 6}, "[{b, a:(1)4}, {}, {}]", "[{}, {a:(6)2}, {b:(2)3, a:(3)2}]", false},
    {"a=12,b=6,c=4", {144, 72, 96, 64}, "[{b:(1)2}, {}, {}, {}]", "[{c, a}, {}, {}, {b:(3)2}]", false},
    {"a=2,b=3", {6}, "[(2:{}, 3:{b})]", "[(3:{}, 2:{a})]", false},
    {"a=6", {2, 3}, "[{a:(1)2}, {a:(2)3}]", "[{a:(3)2}, {a:(1)3}]", true},
};
TEST(RedistributionPlannerTest, SaysWhereNoWayKeepsTheBound) {
  for (const auto& [text, shape, from, to, exceeds] : kUnrefined) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
    const Redistribution& plan = planner.plan(parse_layout(from, mesh), parse_layout(to, mesh), shape, 4);
    EXPECT_EQ(exceeds_larger_end(plan), exceeds) << from << " -> " << to;
  }
}

// Of a state of one piece of the dimension there are permutes to more states than a finer graph may have: what a limited
// search finds there takes 5,265,024. The graph of the states on straight ways to the target has a path of a tenth.
TEST(RedistributionPlannerTest, AlsoSearchesAFinerGraphThatGoesStraightToTheTarget) {
  const DeviceMesh mesh = DeviceMesh::parse("roce=128,pcie=2,hccs=4");
  const auto costs = std::make_shared<TestCosts>(0, std::vector<TestCosts::Axis>{{20'000, 8}, {10'000, 4}, {5'000, 1}});
  RedistributionPlanner planner(mesh, costs, {.pieces = {mesh.whole(0), mesh.whole(1), mesh.whole(2)}});
  const TensorLayout to = parse_layout("[{roce, hccs}]", mesh);
  const Redistribution& plan = planner.plan(parse_layout("[{pcie, hccs}] unreduced={roce}", mesh), to, {13824}, 4);
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(plan.steps.back().after, to);
  EXPECT_FALSE(exceeds_larger_end(plan));
  EXPECT_LT(plan.time, 526'502);
}

}  // namespace
}  // namespace shardplan
